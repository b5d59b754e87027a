"""What each kind of failure means: for its link, for its host, and to whoever reads the report.

The one place that tells. :class:`~focused.crawl.host_care.HostCare` and
:class:`~focused.crawl.settling.Settling` act by it, and a test holds the table
of docs/reference/crawl-folder.md against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from focused.web.page import FailureKind


class HostEffect(StrEnum):
    """What a failure means to the host; the value is what the docs print."""

    GOES_ON = "goes on"
    BACKS_OFF = "backs off"
    ONE_MORE_CHANCE = "asked once more, then given up"
    GIVEN_UP = "given up"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class FailureRule:
    """``again``: the link is tried up to ``politeness.max_tries`` times, else once.

    ``meaning`` is one line for people.
    """

    again: bool
    host: HostEffect
    meaning: str

    @property
    def host_trouble(self) -> bool:
        """Whether the host itself is in trouble, not just this URL."""
        return self.host not in (HostEffect.GOES_ON, HostEffect.NOT_ASKED)


def _passing(meaning: str) -> FailureRule:
    return FailureRule(again=True, host=HostEffect.BACKS_OFF, meaning=meaning)


def _this_url_only(meaning: str) -> FailureRule:
    return FailureRule(again=False, host=HostEffect.GOES_ON, meaning=meaning)


def _not_asked(meaning: str) -> FailureRule:
    return FailureRule(again=False, host=HostEffect.NOT_ASKED, meaning=meaning)


RULES: Mapping[FailureKind, FailureRule] = {
    FailureKind.DNS: _passing("the name could not be looked up"),
    FailureKind.NO_HOST: FailureRule(
        again=True, host=HostEffect.ONE_MORE_CHANCE, meaning="there is no such name"
    ),
    FailureKind.PRIVATE_ADDRESS: FailureRule(
        again=False,
        host=HostEffect.GIVEN_UP,
        meaning="the name leads into a private network (`scope.private_addresses`)",
    ),
    FailureKind.CONNECT: _passing("no connection: refused, or no route"),
    FailureKind.TIMEOUT: _passing("no answer, or no whole one, in `politeness.timeout_s`"),
    FailureKind.RESET: _passing("the connection broke off, or the answer was no HTTP"),
    FailureKind.TLS: FailureRule(
        again=False, host=HostEffect.BACKS_OFF, meaning="no TLS: certificate, protocol, handshake"
    ),
    FailureKind.CLIENT_ERROR: _this_url_only("4xx, but for 404, 410 and 429"),
    FailureKind.GONE: _this_url_only("404 or 410"),
    FailureKind.THROTTLED: _passing("429: the host asks for a pause"),
    FailureKind.SERVER_ERROR: _passing("5xx"),
    FailureKind.TOO_LARGE: _this_url_only(
        "larger than `scope.max_page_bytes`, packed or unpacked, or headers without end"
    ),
    FailureKind.BAD_ENCODING: _this_url_only("not packed as its Content-Encoding says"),
    FailureKind.WRONG_TYPE: _this_url_only("no page by `scope.content_types`, or by its bytes"),
    FailureKind.WRONG_LANGUAGE: _this_url_only("not in `scope.languages`"),
    FailureKind.EMPTY: _this_url_only("neither text nor links"),
    FailureKind.BAD_REDIRECT: _this_url_only("leads nowhere, to itself, or more than ten on"),
    FailureKind.ROBOTS: _not_asked("forbidden by robots.txt"),
    FailureKind.DIRECTORY_BUDGET: _not_asked("`scope.max_pages_per_directory` is reached"),
    FailureKind.MIRROR: _not_asked(
        "a mirror has the page; see docs/explanation/duplicates.md#mirrors"
    ),
    FailureKind.ALIAS: _not_asked(
        "its page came under another URL; see docs/explanation/duplicates.md#aliases"
    ),
    FailureKind.TRAP: _not_asked("leads into a trap; see docs/explanation/traps.md"),
    FailureKind.DROPPED: _this_url_only("by a middleware"),
    FailureKind.PARSE_TIMEOUT: _this_url_only("parsing exceeded `FOCUSED_PARSE_TIMEOUT_S`"),
    FailureKind.PARSE_MEMORY: _this_url_only("parsing exceeded `FOCUSED_PARSE_MEMORY_MB`"),
    FailureKind.UNDIGESTED: _this_url_only("our own fault; see `crawl.log`"),
    FailureKind.OTHER: FailureRule(
        again=True, host=HostEffect.GOES_ON, meaning="anything else; see `crawl.log`"
    ),
}
