"""What a fetch can bring: links, pages, classifications, outcomes.

Frozen data that every other package speaks in. Score (predicted before the
fetch), relevance (judged after it) and outcome (what the network did) are
three things and stay three fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

NEAR_WORDS = 8


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One hyperlink as its page shows it.

    ``url`` is absolute and normalised. ``anchor`` is the link's own text
    (alt and title texts of what it wraps included), ``context`` the text
    around it without the anchor, then the heading above. ``tag_path``
    is the path of elements from ``body`` to the link, classes included,
    such as ``"body/div.nav/ul/li/a"``. ``position`` is its place among the
    page's links in [0, 1]. ``nofollow`` tells rel=nofollow.

    Of the context's words the first ``words_before`` (0 to 20) stand before
    the link, the last ``heading_words`` (0 to 10) are the heading's, those
    between (0 to 20) stand after the link. ``context_levels`` (0 to 2) is how many
    blocks above the link's own the text was taken from, that one saying too
    little: the words' distance in the tree.

    ``title`` is the title or aria-label where the anchor does not have it
    already, at most 200 characters. ``rel`` has the lower-case tokens of all
    the page's links to this target, at most 8 of 20 characters each, so that
    it can have "nofollow" where ``nofollow`` is False.

    ``block`` is the number, from 0 on in document order, of the nearest block
    around the link (list, table, paragraph, section, at last the page) that
    holds another target too; links with equal numbers are of one block.
    ``siblings`` counts the targets in that block, nested blocks and this
    link included. ``navigation`` is for links that stand in what says it is
    navigation (:mod:`focused.web.html.link_context`) in the first 24 levels of the
    tree, and only if all the page's links to this target do.

    A struct and no dataclass, for pages have many, which are made, kept and
    read back for less. :func:`msgspec.structs.replace` makes changed copies.
    """

    url: str
    anchor: str = ""
    context: str = ""
    tag_path: str = ""
    position: float = 0.0
    nofollow: bool = False
    words_before: int = 0
    heading_words: int = 0
    context_levels: int = 0
    title: str = ""
    rel: tuple[str, ...] = ()
    block: int = 0
    siblings: int = 1
    navigation: bool = False

    @property
    def before(self) -> str:
        """The words before the link, 8 at most: the i-th from the end is at distance -i.

        The <term, distance> of Chakrabarti, Punera and Subramanyam (2002):
        in document order, other links' text and the blocks between included,
        no further than the block the context is from.
        """
        return " ".join(self.context.split()[: self.words_before][-NEAR_WORDS:])

    @property
    def after(self) -> str:
        """The words after the link, 8 at most: the i-th is at distance i. See ``before``."""
        words = self.context.split()
        end = min(len(words) - self.heading_words, self.words_before + NEAR_WORDS)
        return " ".join(words[self.words_before : end])

    @property
    def heading(self) -> str:
        """The beginning of the nearest heading (h1 to h6) above the link, 10 words at most."""
        words = self.context.split()
        return " ".join(words[len(words) - self.heading_words :])


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page. ``links`` holds each target once, in document order.

    ``links_over_limit`` counts those that came after the most that are taken, each
    time one stands on the page.

    ``text`` is the visible text, boilerplate included; ``headings`` the texts
    of h1 to h3. ``canonical`` (as the page says, in its head or its Link header)
    and ``refresh`` are absolute URLs or None.
    ``language`` is an ISO 639-1 code or ``""`` when unknown, ``charset`` an
    encoding as the Encoding Standard names it, in lower case. ``noindex`` and
    ``nofollow`` join meta robots and X-Robots-Tag, and so does
    ``unavailable_after``, in seconds since the epoch.
    """

    url: str
    title: str = ""
    headings: tuple[str, ...] = ()
    description: str = ""
    text: str = ""
    links: tuple[Link, ...] = ()
    links_over_limit: int = 0
    canonical: str | None = None
    refresh: str | None = None
    language: str = ""
    charset: str = "utf-8"
    noindex: bool = False
    nofollow: bool = False
    unavailable_after: float | None = None

    def is_noindex_at(self, now: float) -> bool:
        """Whether the page asks not to be indexed, ``now`` in seconds since the epoch."""
        ends_at = self.unavailable_after
        return self.noindex or (ends_at is not None and now >= ends_at)


@dataclass(frozen=True, slots=True)
class Classification:
    """The topic classifier's verdict on one fetched page.

    ``relevance`` is the calibrated probability in [0, 1] that the page is on
    topic; ``on_topic`` is relevance held against the model's threshold;
    ``known`` is False when the page had too little text to be judged (then
    relevance is the prior). ``category`` is the likeliest of all, good or not.
    """

    relevance: float
    on_topic: bool
    known: bool = True
    category: str = ""


class FailureKind(StrEnum):
    """Why a URL gave no page. The value is what reports print.

    ``NO_HOST``: the name service says that there is no such name; ``DNS``:
    the name service gave no answer; ``PRIVATE_ADDRESS``: it, or the URL,
    names an address that is no public server's. ``PARSE_TIMEOUT``,
    ``PARSE_MEMORY``: parsing the page exceeded the time or memory limit.
    """

    DNS = "dns"
    NO_HOST = "no-such-host"
    PRIVATE_ADDRESS = "private-address"
    CONNECT = "connect"
    TIMEOUT = "timeout"
    RESET = "reset"
    TLS = "tls"
    CLIENT_ERROR = "http-4xx"
    GONE = "gone"
    THROTTLED = "http-429"
    SERVER_ERROR = "http-5xx"
    TOO_LARGE = "too-large"
    BAD_ENCODING = "bad-encoding"
    WRONG_TYPE = "wrong-type"
    WRONG_LANGUAGE = "wrong-language"
    EMPTY = "empty"
    BAD_REDIRECT = "bad-redirect"
    ROBOTS = "robots"
    DIRECTORY_BUDGET = "directory-budget"
    MIRROR = "mirror"
    ALIAS = "alias"
    TRAP = "trap"
    DROPPED = "dropped"
    PARSE_TIMEOUT = "parse-timeout"
    PARSE_MEMORY = "parse-memory"
    INTERNAL_ERROR = "internal-error"
    OTHER = "other"


UNRECORDED_HOST = FailureKind.NO_HOST
"""In a crawl of a recorded web: the host is not in that web, which is no error."""


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """A request and its response as they were sent, for the archive.

    Heads are the first line and the headers, up to and including the empty
    line. ``body`` is the response's: transfer coding removed, content coding
    as received; None when it equals the body of the outcome. ``truncated``
    is why the body ends early, in WARC's words (``length``, ``time``,
    ``disconnect``, ``unspecified``); ``""`` when it is whole.
    """

    request_head: bytes
    response_head: bytes
    body: bytes | None = None
    truncated: str = ""

    def response_values(self, name: str) -> list[str]:
        """Return the values of the response's headers of that lower-case name, in order."""
        lines = self.response_head.decode("latin-1").split("\r\n")[1:]
        fields = (line.partition(":") for line in lines)
        return [value.strip() for key, _, value in fields if key.lower() == name]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response with a body that may be a page (status 2xx).

    ``headers`` has lower-case names; ``elapsed_s`` is the time from request
    to last byte; ``address`` is the IP address that answered, ``""`` when it
    is not known. ``received_at`` is when it came, in seconds since the epoch.
    ``exchange`` is what was sent; None when the client did not keep it.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    elapsed_s: float = 0.0
    address: str = ""
    received_at: float = 0.0
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)

    def as_failure(self, kind: FailureKind, detail: str = "") -> Failed:
        """Return the failure that this response is; it keeps what was sent."""
        exchange = self.exchange
        if exchange is not None and exchange.body is None:
            exchange = replace(exchange, body=self.body)
        return Failed(self.url, kind, self.status, detail, exchange=exchange)


@dataclass(frozen=True, slots=True)
class Redirected:
    """The server points elsewhere; ``target`` is absolute and normalised.

    ``retry_after_s`` is what it asked for, if it did. ``exchange`` as in :class:`Fetched`.
    """

    url: str
    status: int
    target: str
    elapsed_s: float = 0.0
    address: str = ""
    retry_after_s: float | None = None
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """No page came. ``retry_after_s`` is what the server asked for, if it did.

    ``exchange`` is what was sent, where there was a response.
    """

    url: str
    kind: FailureKind
    status: int = 0
    detail: str = ""
    retry_after_s: float | None = None
    elapsed_s: float = 0.0
    address: str = ""
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)


Outcome = Fetched | Redirected | Failed
