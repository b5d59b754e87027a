"""Links that are not asked for: their page stands under another prefix, too.

Which prefixes hold the same pages is told by :mod:`focused.crawl.mirror_pairs`. A link at its
turn is refused when its counterpart came as a page of its own, or, under the lesser prefix,
waits or is under way. Nothing is lost by it: a refused link is kept, and queued again when
its counterpart fails or its pair is dissolved. And some that could be refused are fetched
all the same, to see whether the pair still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from focused.crawl.mirror_pairs import STRONG, TRIED, MirrorPairs
from focused.frontier.frontier import Known
from focused.frontier.queued import QueuedLink, link_key
from focused.frontier.rows import pack
from focused.frontier.tables import Tables
from focused.web.prefixes import common_ending, endings
from focused.web.url import host_of

MAX_REFUSED = 200_000
"""So many refused links are kept; more are refused only when their counterpart came."""
_ASKED = 4
_TRY_ONE_IN, _LATER_ONE_IN = 8, 64
_TABLE = "mirrors"
_BROUGHT, _REFUSED = b"brought ", b"refused "

KnownAmong = Callable[[Sequence[tuple[str, bytes]]], Known]


class _Refused(msgspec.Struct, array_like=True):
    """A link, and the lesser prefix of the pair for which it was refused."""

    lesser: str
    link: QueuedLink


_refused_in = msgspec.msgpack.Decoder(_Refused).decode


class Mirrors:
    """The mirrors of a crawl, durable over its tables; the caller commits.

    On disk: a row of some 40 bytes for each settled link that brought no new page, and
    a refused link as it was queued.
    """

    def __init__(
        self, tables: Tables, known_among: KnownAmong, under_way: Callable[[str], bool]
    ) -> None:
        """``under_way`` tells whether a URL is being asked for."""
        self._tables = tables
        self._known_among = known_among
        self._is_under_way = under_way
        self._pairs = MirrorPairs(tables)
        self._kept = sum(1 for _ in tables.scan(_TABLE, _REFUSED))
        self._spared: dict[str, int] = {}
        self._freed: list[QueuedLink] = []

    @property
    def pairs(self) -> Mapping[str, str]:
        """The preferred prefix (a site, or a site and folders) of each lesser one."""
        return self._pairs.preferred

    def fetched(self, url: str, duplicate_of: str | None, *, same_as: str | None = None) -> None:
        """Take in that a page came, and which earlier pages it repeats, nearly and exactly."""
        twin, content = same_as or duplicate_of, link_key(duplicate_of or url)
        hit = None if twin is None else common_ending(url, twin)
        if twin is None:
            self._tables.delete(_TABLE, _BROUGHT + link_key(url))
        elif hit is None:
            self.failed(url)
        else:
            self._tables.put(_TABLE, _BROUGHT + link_key(url), content)
            same_path = hit[0].count("/") == hit[1].count("/") == 2
            self._pairs.hit(hit[0], hit[1], STRONG if same_as or same_path else 1)
        for prefix, ending in endings(url):
            for other in list(self._pairs.others(prefix)):
                if other + ending != twin:
                    self._compare(prefix, other, content, self._content_of(other + ending))

    def _compare(self, prefix: str, other: str, content: bytes, there: bytes | None) -> None:
        """A page under ``prefix`` came, and ``there`` is what its counterpart had brought."""
        if there == content:
            self._pairs.hit(prefix, other, 1)
        elif there is not None:
            ended = self._pairs.miss(prefix, other)
            if ended is not None:
                self._free_all(ended)

    def failed(self, url: str) -> None:
        """A link brought no page of its own: what was refused for its sake is free again."""
        self._tables.put(_TABLE, _BROUGHT + link_key(url), b"")
        self._free(_REFUSED + link_key(url), lambda _: True)

    def refuses(self, link: QueuedLink) -> bool:
        """Whether a link at its turn need not be fetched; then it is kept, and counts as refused.

        Now and then a link that is a mirror's is to be fetched to see whether it still is one.
        """
        if not self._pairs.preferred:
            return False
        for lesser, counterpart, may_wait in self._counterparts(link.url):
            came = self._came(counterpart)
            if not came and not (may_wait and self._comes(counterpart)):
                continue
            if came and self._is_to_be_tried(lesser):
                return False
            if not came and self._kept >= MAX_REFUSED:
                return False
            self._refuse(link, lesser, counterpart)
            return True
        return False

    def take_freed(self) -> Sequence[QueuedLink]:
        """The links that were refused and are to be queued again, once."""
        freed, self._freed = self._freed, []
        return freed

    def _counterparts(self, url: str) -> Iterator[tuple[str, str, bool]]:
        """The lesser prefix of the pair, the counterpart, and if it is the preferred one's."""
        asked = 0
        for prefix, ending in endings(url):
            preferred = self._pairs.preferred.get(prefix)
            if preferred is not None:
                yield prefix, preferred + ending, True
                asked += 1
            for lesser in self._pairs.lesser(prefix):
                yield lesser, lesser + ending, False
                asked += 1
            if asked >= _ASKED:
                return

    def _is_to_be_tried(self, lesser: str) -> bool:
        """Whether it is time to try the pair: more seldom when the last tries were all hits."""
        tries = self._pairs.tries(lesser)
        seldom = len(tries) >= TRIED and all(tries)
        spared = self._spared.get(lesser, 0) + 1
        due = spared >= (_LATER_ONE_IN if seldom else _TRY_ONE_IN)
        self._spared[lesser] = 0 if due else spared
        return due

    def _came(self, url: str) -> bool:
        """Whether the URL was fetched, and brought more than a copy of what stands elsewhere."""
        return self._content_of(url) is not None

    def _content_of(self, url: str) -> bytes | None:
        """The key of the page that the URL brought, or of that page's original."""
        key = link_key(url)
        if key not in self._known_among([(host_of(url), key)]).settled:
            return None
        brought = self._tables.get(_TABLE, _BROUGHT + key)
        return key if brought is None else brought or None

    def _comes(self, url: str) -> bool:
        """Whether the URL is under way or waits, and will not itself be refused for another."""
        key = link_key(url)
        waits = key in self._known_among([(host_of(url), key)]).waiting
        if not waits and not self._is_under_way(url):
            return False
        return not any(prefix in self._pairs.preferred for prefix, _ in endings(url))

    def _refuse(self, link: QueuedLink, lesser: str, counterpart: str) -> None:
        self.failed(link.url)
        if self._kept >= MAX_REFUSED:
            return
        key = _REFUSED + link_key(counterpart) + link_key(link.url)
        self._tables.put(_TABLE, key, pack(_Refused(lesser, link)))
        self._kept += 1

    def _free_all(self, lesser: str) -> None:
        self._free(_REFUSED, lambda refused: refused.lesser == lesser)
        self._spared.pop(lesser, None)

    def _free(self, begins: bytes, chosen: Callable[[_Refused], bool]) -> None:
        rows = ((key, _refused_in(raw)) for key, raw in self._tables.scan(_TABLE, begins))
        freed = [(key, refused.link) for key, refused in rows if chosen(refused)]
        for key, link in freed:
            self._tables.delete(_TABLE, key)
            self._freed.append(_once_more(link))
        self._kept -= len(freed)


def _once_more(link: QueuedLink) -> QueuedLink:
    """The link under another key: a frontier takes none that was settled."""
    return msgspec.structs.replace(link, key=link_key(f"{link.url} {link.key.hex()}"))
