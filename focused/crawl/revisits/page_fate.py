"""What the response to a revisit means for its page: changed, moved, gone, back, or nothing.

Soft 404s are responses with a success status or a redirect that mean that a page is missing. They
are recognised by comparison with the response to a path that cannot exist (Bar-Yossef, Broder,
Kumar and Tomkins 2004, "Sic transit gloria telae"), by redirects to the home page, and by titles.
The crawl requests such a path before it visits a host's pages again, and every
:data:`CHECK_INTERVAL_S` from then on.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from focused.archive.page_history import VisitResult
from focused.crawl.revisits.change_detection import (
    ContentChange,
    HostBoilerplate,
    VersionSignature,
    VersionText,
    detect_change,
)
from focused.durations import DAY_S, WEEK_S
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.text import hash_fraction
from focused.web.page import Failed, FailureKind, Fetched, NotModified, Outcome, Redirected
from focused.web.urls import host_of

GRACE_VISITS = 3
"""A page is gone for good after as many visits in a row that did not find it."""

GRACE_S = WEEK_S
"""The least time between the first and the last of these visits."""


class Absence(msgspec.Struct, frozen=True, array_like=True):
    """The visits in a row that did not find a page; the first was at ``since``."""

    visits: int = 0
    since: float = 0.0

    def next(self, at: float) -> Absence:
        """Return the absence after one more visit at ``at``."""
        return Absence(self.visits + 1, self.since if self.visits else at)

    @property
    def is_over(self) -> bool:
        """Whether the page was found by the last visit that told."""
        return self.visits == 0


PRESENT = Absence()


class PageFate(NamedTuple):
    """The meaning of one revisit.

    ``change`` is the share of content that changed, in [0, 1]; 1 for a page that is not there.
    ``absence`` is to be stored.
    """

    kind: VisitResult
    change: float = 0.0
    absence: Absence = PRESENT


_PERMANENT = frozenset({301, 308})
_GONE = 410


def decide_fate(
    outcome: Outcome,
    change: ContentChange | None,
    absence: Absence,
    at: float,
    *,
    is_soft_404: bool = False,
) -> PageFate:
    """Return what the outcome of a visit at ``at`` means.

    A visit that does not find the page is ``MISSING`` until the absence is final. A temporary
    redirect (302, 303, 307) ends no URL, however long it lasts: clients continue to use the
    original one (RFC 9110, sections 15.4.3 and 15.4.8).

    ``change`` compares a fetched page with the stored version; None for responses without a page.
    ``is_soft_404`` is the result of :func:`looks_like_soft_404` or
    :func:`redirects_to_missing_page`. 410 and permanent redirects (301, 308) are final at once (RFC
    9110, sections 15.5.11, 15.4.2 and 15.4.9), 404 and soft 404s after :data:`GRACE_VISITS` visits
    and :data:`GRACE_S`.
    """
    if isinstance(outcome, Failed) and outcome.kind is FailureKind.GONE:
        return _missing(VisitResult.GONE, absence.next(at), at, at_once=outcome.status == _GONE)
    if is_soft_404 and isinstance(outcome, Fetched | Redirected):
        return _missing(VisitResult.SOFT_404, absence.next(at), at, at_once=False)
    if isinstance(outcome, Redirected):
        if outcome.status not in _PERMANENT:
            return PageFate(VisitResult.REDIRECTED)
        return _missing(VisitResult.MOVED, absence.next(at), at, at_once=True)
    if isinstance(outcome, NotModified):
        is_back = not absence.is_over
        return PageFate(VisitResult.REAPPEARED if is_back else VisitResult.NOT_MODIFIED)
    if isinstance(outcome, Failed) or change is None:
        return PageFate(VisitResult.FAILED, absence=absence)
    kind = change.kind if absence.is_over else VisitResult.REAPPEARED
    return PageFate(kind, change=change.size)


def _missing(kind: VisitResult, absence: Absence, at: float, *, at_once: bool) -> PageFate:
    waited = absence.visits >= GRACE_VISITS and at - absence.since >= GRACE_S
    return PageFate(kind if at_once or waited else VisitResult.MISSING, 1.0, absence)


CHECK_INTERVAL_S = 90 * DAY_S
"""How often a host is asked for a page that cannot exist."""

_RETRY_S = DAY_S
"""The same after an answer that tells nothing, such as 503."""
_REFUSALS = frozenset({FailureKind.GONE, FailureKind.CLIENT_ERROR})
"""What hosts answer for a page that does not exist; others may answer better another day."""


class MissingPage(msgspec.Struct, frozen=True, array_like=True):
    """How a host answers requests for a path that cannot exist.

    ``title`` and ``signature`` are of a page sent with a success status. ``target`` is that of a
    redirect, unless it contains the requested path.
    """

    title: str = ""
    signature: VersionSignature | None = None
    target: str = ""


def missing_page_url(url: str, draw: float) -> str:
    """Return a URL in the directory of ``url`` that cannot exist, of the same file type.

    ``draw`` in [0, 1) is random.
    """
    parts = urlsplit(url)
    directory, _, name = parts.path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    ending = f".{suffix}" if stem and dot else ""
    return f"{parts.scheme}://{parts.netloc}{directory}/focused{int(draw * 2**53):016x}{ending}"


_MIN_SOFT_CHANGE = 0.4
_MAX_COPY_CHANGE = 0.05
_MAX_ERROR_WORDS = 120
# "Not found" in English, German, French, Spanish, Italian, Portuguese, Dutch, Polish and Russian.
_ERROR_TITLE = re.compile(
    r"\b404\b|\b(?:page|file|url|document|article|item|product)?\s?(?:was\s)?(?:could\s)?not\s(?:be\s)?found\b"
    r"|\bno longer (?:available|exists)\b|\bdoes(?:n.t| not) exist\b|\bnicht gefunden\b"
    r"|\bintrouvable\b|\bno (?:se )?encontrad[ao]\b|\bnon trovat[ao]\b|\bn[aã]o encontrad[ao]\b"
    r"|\bniet gevonden\b|\bnie znaleziono\b|\bне найден",
    re.IGNORECASE,
)


def looks_like_soft_404(
    title: str,
    text: VersionText,
    change: ContentChange,
    title_before: str,
    missing: MissingPage | None,
    boilerplate: HostBoilerplate,
) -> bool:
    """Whether a page with a success status says that the stored page is missing.

    Nearly all content must have changed: a page that has always looked like the host's response to
    missing paths is a page. Then it must equal that response (``missing``), or be short and have a
    title such as "Not found" that the stored version did not have.
    """
    if change.kind is not VisitResult.CHANGED or change.size < _MIN_SOFT_CHANGE:
        return False
    if missing is not None and missing.signature is not None:
        copy = detect_change(missing.signature, text, boilerplate)
        if copy.size <= _MAX_COPY_CHANGE and (title == missing.title or not text.words):
            return True
    says_so = _ERROR_TITLE.search(title) and not _ERROR_TITLE.search(title_before)
    return bool(says_so) and text.words <= _MAX_ERROR_WORDS


_INDEX = re.compile(r"/?(?:index|home|default)?(?:\.\w{2,5})?", re.IGNORECASE)


def redirects_to_missing_page(outcome: Redirected, missing: MissingPage | None) -> bool:
    """Whether a redirect means that the page is missing.

    True if the host redirects missing paths to the same URL, or if a page below the home page
    redirects to the home page of its site.
    """
    if missing is not None and missing.target:
        return outcome.target == missing.target
    old, new = urlsplit(outcome.url), urlsplit(outcome.target)
    same_site = _without_www(old.netloc) == _without_www(new.netloc)
    was_home = _INDEX.fullmatch(old.path) is not None and not old.query
    is_home = new.path in ("", "/") and not new.query
    return same_site and is_home and not was_home


def _without_www(netloc: str) -> str:
    return netloc.removeprefix("www.")


class _HostRow(msgspec.Struct, frozen=True, array_like=True):
    next_check_at: float
    missing: MissingPage


_decode = msgspec.msgpack.Decoder(_HostRow).decode


class MissingPages:
    """How hosts answer requests for paths that cannot exist; persistent, the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def get(self, url: str) -> MissingPage | None:
        """Return the answer of the URL's host; None if it was never asked."""
        row = self._row(url)
        return None if row is None else row.missing

    def url_to_request(self, url: str, now: float) -> str | None:
        """Return the missing URL to request before ``url``; None if its host was asked lately."""
        row = self._row(url)
        if row is not None and now < row.next_check_at:
            return None
        return missing_page_url(url, hash_fraction(url, int(now)))

    def record(
        self, outcome: Outcome, now: float, title: str, signature: VersionSignature | None
    ) -> None:
        """Store the answer to a request; ``signature`` is that of the page, if one came."""
        missing = MissingPage(title, signature)
        interval_s = CHECK_INTERVAL_S
        if isinstance(outcome, Redirected):
            # http to https, another host, a login page that leads back: no page of its own.
            name = urlsplit(outcome.url).path.rpartition("/")[2]
            missing = MissingPage(target="" if name in outcome.target else outcome.target)
        elif isinstance(outcome, Failed) and outcome.kind not in _REFUSALS:
            missing, interval_s = self.get(outcome.url) or missing, _RETRY_S
        row = _HostRow(now + interval_s, missing)
        self._tables.put("missing_pages", host_of(outcome.url).encode(), pack(row))

    def _row(self, url: str) -> _HostRow | None:
        raw = self._tables.get("missing_pages", host_of(url).encode())
        return None if raw is None else _decode(raw)
