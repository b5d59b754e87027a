"""What each kind of failure means for its link and its host, and the hosts that are dead.

:mod:`focused.crawl.responses` decides by them whether a link is retried,
:mod:`focused.frontier.host_pace` computes when its host is, and ``host_policy.py`` counts.

The kinds of failure in docs/reference/crawl-folder.md are generated from :data:`FAILURE_RULES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.web.page import FailureKind


class HostEffect(StrEnum):
    """What a failure means for the host; the docs print the values."""

    GOES_ON = "goes on"
    BACKS_OFF = "backs off"
    ONE_MORE_CHANCE = "asked once more, then dead"
    DEAD = "dead"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class FailureRule:
    """The rule for one kind of failure; ``meaning`` is one line for users.

    ``again``: the link is tried up to ``politeness.max_tries`` times, otherwise once.
    """

    again: bool
    host: HostEffect
    meaning: str

    @property
    def is_host_failure(self) -> bool:
        """Whether the host has failed, not just this URL."""
        return self.host not in (HostEffect.GOES_ON, HostEffect.NOT_ASKED)


def _transient(meaning: str) -> FailureRule:
    return FailureRule(again=True, host=HostEffect.BACKS_OFF, meaning=meaning)


def _url_failure(meaning: str) -> FailureRule:
    return FailureRule(again=False, host=HostEffect.GOES_ON, meaning=meaning)


def _not_fetched(meaning: str) -> FailureRule:
    return FailureRule(again=False, host=HostEffect.NOT_ASKED, meaning=meaning)


FAILURE_RULES: Mapping[FailureKind, FailureRule] = {
    FailureKind.DNS: _transient("the name could not be looked up"),
    FailureKind.NO_HOST: FailureRule(
        again=True, host=HostEffect.ONE_MORE_CHANCE, meaning="there is no such name"
    ),
    FailureKind.PRIVATE_ADDRESS: FailureRule(
        again=False,
        host=HostEffect.DEAD,
        meaning="the name leads into a private network (`scope.private_addresses`)",
    ),
    FailureKind.CONNECT: _transient("no connection: refused, or no route"),
    FailureKind.TIMEOUT: _transient("no answer, or no whole one, in `politeness.timeout_s`"),
    FailureKind.RESET: _transient("the connection broke off, or the answer was no HTTP"),
    FailureKind.TLS: FailureRule(
        again=False, host=HostEffect.BACKS_OFF, meaning="no TLS: certificate, protocol, handshake"
    ),
    FailureKind.CLIENT_ERROR: _url_failure("4xx, but for 404, 410 and 429"),
    FailureKind.GONE: _url_failure("404 or 410"),
    FailureKind.THROTTLED: _transient("429: the host asks for a pause"),
    FailureKind.SERVER_ERROR: _transient("5xx"),
    FailureKind.LOGIN: _transient("the login to its host failed; see docs/how-to/login.md"),
    FailureKind.TOO_LARGE: _url_failure(
        "larger than `scope.max_page_bytes`, packed or unpacked; a document of more than 50 MB "
        "unpacked; or headers without end"
    ),
    FailureKind.BAD_ENCODING: _url_failure("not packed as its Content-Encoding says"),
    FailureKind.WRONG_TYPE: _url_failure(
        "no page by `scope.content_types` and `scope.documents`, or by its bytes"
    ),
    FailureKind.WRONG_LANGUAGE: _url_failure("not in `scope.languages`"),
    FailureKind.EMPTY: _url_failure("neither text nor links"),
    FailureKind.ENCRYPTED: _url_failure("a document with a password"),
    FailureKind.DAMAGED: _url_failure("a document that is damaged or truncated"),
    FailureKind.SCANNED: _url_failure("a PDF of images without text"),
    FailureKind.MISSING_LIBRARY: _url_failure(
        "a document whose format needs `pip install 'focused-crawler[documents]'`"
    ),
    FailureKind.BAD_REDIRECT: _url_failure("leads nowhere, to itself, or more than ten on"),
    FailureKind.ROBOTS: _not_fetched("forbidden by robots.txt"),
    FailureKind.MIRROR: _not_fetched(
        "a mirror has the page; see docs/explanation/duplicates.md#mirrors"
    ),
    FailureKind.ALIAS: _not_fetched(
        "its page came under another URL; see docs/explanation/duplicates.md#aliases"
    ),
    FailureKind.TRAP: _not_fetched("leads into a trap; see docs/explanation/traps.md"),
    FailureKind.DROPPED: _url_failure("by a middleware"),
    FailureKind.PARSE_TIMEOUT: _url_failure("parsing exceeded `FOCUSED_PARSE_TIMEOUT_S`"),
    FailureKind.PARSE_MEMORY: _url_failure("parsing exceeded `FOCUSED_PARSE_MEMORY_MB`"),
    FailureKind.PARSE_CRASH: FailureRule(
        again=True,
        host=HostEffect.GOES_ON,
        meaning="three parser processes died over it",
    ),
    FailureKind.INTERNAL_ERROR: _url_failure("our own fault; see `crawl.log`"),
    FailureKind.OTHER: FailureRule(
        again=True, host=HostEffect.GOES_ON, meaning="anything else; see `crawl.log`"
    ),
}


_MAX_ROWS_PER_HOST = 10


class DeadHosts:
    """Hosts that this crawl doesn't request any more; persistent, the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._hosts: dict[str, tuple[FailureKind, int]] = {}
        for name, raw in tables.scan("dead_hosts"):
            kind, rows = unpack(raw)
            self._hosts[name.decode()] = FailureKind(kind), rows

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, host: str, kind: FailureKind) -> None:
        """Declare a host dead because of its last failure."""
        self._put(host, kind, 0)

    def why(self, host: str) -> FailureKind | None:
        """Return the failure a host is dead for, or None."""
        found = self._hosts.get(host)
        return None if found is None else found[0]

    def take_row(self, host: str) -> bool:
        """Whether one more of the host's links gets an archive row: only the first few do."""
        kind, rows = self._hosts[host]
        if rows >= _MAX_ROWS_PER_HOST:
            return False
        self._put(host, kind, rows + 1)
        return True

    def revive(self, host: str) -> None:
        """Allow requests to a host again."""
        if self._hosts.pop(host, None) is not None:
            self._tables.delete("dead_hosts", host.encode())

    def _put(self, host: str, kind: FailureKind, rows: int) -> None:
        self._hosts[host] = kind, rows
        self._tables.put("dead_hosts", host.encode(), pack([kind.value, rows]))
