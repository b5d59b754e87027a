"""What a fetch can bring: links, pages, judgements, outcomes.

Frozen data that every other package speaks in. Score (predicted before the
fetch), relevance (judged after it) and outcome (what the network did) are
three things and stay three fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Link:
    """One hyperlink as its page shows it.

    ``url`` is absolute and normalised. ``anchor`` is the link's own text
    (alt and title texts of what it wraps included), ``context`` the text
    around it without the anchor, nearest block first, bounded. ``tag_path``
    is the path of elements from ``body`` to the link, classes included,
    such as ``"body/div.nav/ul/li/a"``. ``position`` is its place among the
    page's links in [0, 1]. ``nofollow`` tells rel=nofollow.
    """

    url: str
    anchor: str = ""
    context: str = ""
    tag_path: str = ""
    position: float = 0.0
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page. ``links`` holds each target once, in document order.

    ``text`` is the visible text, boilerplate included; ``headings`` the texts
    of h1 to h3. ``canonical`` and ``refresh`` are absolute URLs or None.
    ``language`` is an ISO 639-1 code or ``""`` when unknown. ``noindex`` and
    ``nofollow`` join meta robots and X-Robots-Tag.
    """

    url: str
    title: str = ""
    headings: tuple[str, ...] = ()
    description: str = ""
    text: str = ""
    links: tuple[Link, ...] = ()
    canonical: str | None = None
    refresh: str | None = None
    language: str = ""
    charset: str = "utf-8"
    noindex: bool = False
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The topic classifier's verdict on one fetched page.

    ``relevance`` is the calibrated probability in [0, 1] that the page is on
    topic; ``on_topic`` is relevance held against the model's threshold;
    ``known`` is False when the page had too little text to be judged (then
    relevance is the prior). ``category`` is the likeliest one.
    """

    relevance: float
    on_topic: bool
    known: bool = True
    category: str = ""


class FailureKind(StrEnum):
    """Why a URL gave no page. The value is what reports print."""

    DNS = "dns"
    CONNECT = "connect"
    TIMEOUT = "timeout"
    RESET = "reset"
    TLS = "tls"
    CLIENT_ERROR = "http-4xx"
    GONE = "gone"
    THROTTLED = "http-429"
    SERVER_ERROR = "http-5xx"
    TOO_LARGE = "too-large"
    WRONG_TYPE = "wrong-type"
    WRONG_LANGUAGE = "wrong-language"
    EMPTY = "empty"
    BAD_REDIRECT = "bad-redirect"
    ROBOTS = "robots"
    HOST_BUDGET = "host-budget"
    DROPPED = "dropped"
    UNDIGESTED = "undigested"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response with a body that may be a page (status 2xx).

    ``headers`` has lower-case names; ``elapsed_s`` is the time from request
    to last byte.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Redirected:
    """The server points elsewhere; ``target`` is absolute and normalised."""

    url: str
    status: int
    target: str
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """No page came. ``retry_after_s`` is what the server asked for, if it did."""

    url: str
    kind: FailureKind
    status: int = 0
    detail: str = ""
    retry_after_s: float | None = None
    elapsed_s: float = 0.0


Outcome = Fetched | Redirected | Failed
