"""Data types of a fetch: links, pages, classifications, outcomes.

Score (predicted before the fetch), relevance (measured after it) and outcome (what the network did)
are three different fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One hyperlink of a page.

    ``url`` is absolute and normalised. ``anchor`` is the link's own text, with the alt and title
    texts of the elements in it. ``context`` is the text around the link without the anchor,
    followed by the heading above. ``tag_path`` is the path of elements from ``body`` to the link,
    with classes: ``"body/div.nav/ul/li/a"``. ``position`` is the link's place among the page's
    links, in [0, 1]. ``nofollow`` is rel=nofollow.

    ``title`` is the title or aria-label, at most 200 characters, unless the anchor contains it.
    ``rel`` has the lower-case tokens of all links of the page to this target, at most 8 of 20
    characters. It can contain "nofollow" where ``nofollow`` is False.

    A struct, not a dataclass: pages have many links, and structs are created and decoded faster.
    Copy with :func:`msgspec.structs.replace`.
    """

    url: str
    anchor: str = ""
    context: str = ""
    tag_path: str = ""
    position: float = 0.0
    nofollow: bool = False
    title: str = ""
    rel: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page; ``links`` holds each target once, in document order.

    ``links_over_limit`` counts the links after the maximum. ``text`` is the visible text with
    boilerplate; ``headings`` are the texts of h1 to h3. ``canonical`` (from the head or the Link
    header), ``amp`` (the AMP variant that the head names), ``feed`` (the first RSS or Atom feed
    that the head names) and ``refresh`` are absolute URLs or None. ``language`` is an ISO 639-1
    code, ``""`` if unknown; ``charset`` is an encoding of the Encoding Standard in lower case.
    ``noindex``, ``nofollow`` and ``unavailable_after`` (seconds since the epoch) combine meta
    robots and X-Robots-Tag.
    ``format`` is that of a document
    (:data:`focused.topic.DOCUMENT_FORMATS`), ``""`` for HTML and feeds.
    """

    url: str
    title: str = ""
    headings: tuple[str, ...] = ()
    description: str = ""
    text: str = ""
    links: tuple[Link, ...] = ()
    links_over_limit: int = 0
    canonical: str | None = None
    feed: str | None = None
    refresh: str | None = None
    language: str = ""
    charset: str = "utf-8"
    noindex: bool = False
    nofollow: bool = False
    unavailable_after: float | None = None
    amp: str | None = None
    format: str = ""

    def is_noindex_at(self, now: float) -> bool:
        """Whether the page asks not to be indexed at ``now`` (seconds since the epoch)."""
        ends_at = self.unavailable_after
        return self.noindex or (ends_at is not None and now >= ends_at)


MIN_NEAR_RELEVANCE = 0.1
"""Less relevant pages are far off topic."""


@dataclass(frozen=True, slots=True)
class Classification:
    """The topic classifier's result for one fetched page.

    ``relevance`` is the calibrated probability in [0, 1] that the page is on topic; ``on_topic``
    compares it with the model's threshold. ``known`` is False if the page has too little text; the
    relevance is then the prior. ``spam`` is the probability in [0, 1] that the page is spam, 0 if
    that was not rated. ``untempered`` is the relevance before
    :mod:`focused.classifier.calibration`, where that differs.
    """

    relevance: float
    on_topic: bool
    known: bool = True
    untempered: float | None = None
    spam: float = 0.0

    @property
    def is_near_topic(self) -> bool:
        """Whether the page may matter: pages far off topic are no harvest, and hardly guide."""
        return self.relevance >= MIN_NEAR_RELEVANCE or self.on_topic

    @property
    def guiding_relevance(self) -> float:
        """The relevance that orders the crawl and trains its link scorer, in [0, 1]."""
        return self.relevance if self.untempered is None else self.untempered


class FailureKind(StrEnum):
    """Why a URL gave no page; the value is what reports print.

    ``NO_HOST``: the name does not exist. ``DNS``: no name server answered. ``PRIVATE_ADDRESS``: the
    URL or the name leads to a private address. ``PARSE_TIMEOUT``, ``PARSE_MEMORY``: parsing
    exceeded a limit. ``PARSE_CRASH``: parser processes died over it. ``ENCRYPTED``, ``DAMAGED``,
    ``SCANNED``, ``MISSING_LIBRARY``: a document (:mod:`focused.documents`) has a password, is
    damaged or truncated, holds only images, or its format's library is not installed.
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
    LOGIN = "login"
    TOO_LARGE = "too-large"
    BAD_ENCODING = "bad-encoding"
    WRONG_TYPE = "wrong-type"
    WRONG_LANGUAGE = "wrong-language"
    EMPTY = "empty"
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    SCANNED = "scanned"
    MISSING_LIBRARY = "missing-library"
    BAD_REDIRECT = "bad-redirect"
    ROBOTS = "robots"
    MIRROR = "mirror"
    ALIAS = "alias"
    TRAP = "trap"
    DROPPED = "dropped"
    PARSE_TIMEOUT = "parse-timeout"
    PARSE_MEMORY = "parse-memory"
    PARSE_CRASH = "parse-crash"
    INTERNAL_ERROR = "internal-error"
    OTHER = "other"


RENDERED_TYPE = "text/html; charset=utf-8"
"""Content-Type of rendered pages."""

UNRECORDED_HOST = FailureKind.NO_HOST
"""In a crawl of a recorded web: the host is not recorded, which is no error."""


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """A request and its response as they were sent, for the archive.

    A head is the first line and the headers, up to and including the empty line. ``body`` is the
    response's body without transfer coding, with content coding; None if it equals the outcome's
    body. ``truncated`` is the WARC reason for an incomplete body (``length``, ``time``,
    ``disconnect``, ``unspecified``), ``""`` for a complete one.
    """

    request_head: bytes
    response_head: bytes
    body: bytes | None = None
    truncated: str = ""

    def response_values(self, name: str) -> list[str]:
        """Return the values of a response header, in order; ``name`` is lower-case."""
        lines = self.response_head.decode("latin-1").split("\r\n")[1:]
        fields = (line.partition(":") for line in lines)
        return [value.strip() for key, _, value in fields if key.lower() == name]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response with status 2xx, whose body may be a page.

    ``headers`` has lower-case names. ``elapsed_s`` is the time from the request to the last byte.
    ``address`` is the IP address of the server, ``""`` if unknown. ``received_at`` is in seconds
    since the epoch. ``exchange`` is None if the client did not keep it. ``rendered`` is the page's
    HTML after its scripts (UTF-8) if a browser rendered it: what is parsed instead of ``body``.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    elapsed_s: float = 0.0
    address: str = ""
    received_at: float = 0.0
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)
    rendered: bytes | None = field(default=None, repr=False)

    def as_shown(self) -> Fetched:
        """Return the response with the rendered HTML as its body; itself if not rendered."""
        if self.rendered is None:
            return self
        headers = {**self.headers, "content-type": RENDERED_TYPE}
        return replace(self, headers=headers, body=self.rendered, exchange=None, rendered=None)

    def as_failure(self, kind: FailureKind, detail: str = "") -> Failed:
        """Return the failure that this response is, with its exchange."""
        exchange = self.exchange
        if exchange is not None and exchange.body is None:
            exchange = replace(exchange, body=self.body)
        return Failed(self.url, kind, self.status, detail, exchange=exchange)


@dataclass(frozen=True, slots=True)
class NotModified:
    """Status 304 for a conditional request: the stored version is current (RFC 9110, 15.4.5).

    ``headers`` has lower-case names. ``received_at`` is in seconds since the epoch.
    ``retry_after_s`` is the Retry-After header. ``exchange`` as in :class:`Fetched`.
    """

    url: str
    status: int = 304
    headers: Mapping[str, str] = field(default_factory=dict)
    elapsed_s: float = 0.0
    address: str = ""
    received_at: float = 0.0
    retry_after_s: float | None = None
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)

    def as_failure(self, detail: str) -> Failed:
        """Return the failure that this response is where no version is stored."""
        return Failed(
            self.url,
            FailureKind.BAD_REDIRECT,
            self.status,
            detail,
            self.retry_after_s,
            self.elapsed_s,
            self.address,
            self.exchange,
        )


@dataclass(frozen=True, slots=True)
class Redirected:
    """A redirect; ``target`` is absolute and normalised.

    ``retry_after_s`` is the Retry-After header. ``exchange`` as in :class:`Fetched`.
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
    """No page came; ``retry_after_s`` is the Retry-After header.

    ``exchange`` is set if there was a response.
    """

    url: str
    kind: FailureKind
    status: int = 0
    detail: str = ""
    retry_after_s: float | None = None
    elapsed_s: float = 0.0
    address: str = ""
    exchange: HttpExchange | None = field(default=None, compare=False, repr=False)


Outcome = Fetched | NotModified | Redirected | Failed
