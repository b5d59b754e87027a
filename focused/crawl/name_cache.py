"""What name servers said, for as long as they allow, of as many names as memory is given for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from focused.web.addresses import spelled_alike
from focused.web.name_answer import NameAnswer, Standing

LEAST_S = 10.0
"""An answer holds at least so long: a crawl asks for a host's next page within seconds."""
MOST_S = 86_400.0
MOST_MISSING_S = 3_600.0
"""RFC 2308 section 5 finds one to three hours sensible."""
FIRST_MISSING_S = 30.0
"""Name servers err: the first "no" is believed no longer, the second for its time."""
UNANSWERED_S = 10.0
"""Far below the five minutes of RFC 2308 section 7; hosts back off by themselves."""


@dataclass(frozen=True, slots=True)
class _Entry:
    answer: NameAnswer
    until: float


class NameCache:
    """Answers by name, the least recently used dropped first; ``now`` in seconds, any origin."""

    def __init__(self, most_names: int) -> None:
        """``most_names`` 0 keeps nothing."""
        self._most_names = most_names
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str, now: float) -> NameAnswer | None:
        """What is known of ``name``, None when nothing is or it is out of date."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        self._entries.move_to_end(name)
        return entry.answer if now < entry.until else None

    def put(self, name: str, answer: NameAnswer, now: float) -> None:
        """Keep an answer for its time, within the bounds above."""
        before = self._entries.get(name)
        again = before is not None and before.answer.standing is Standing.MISSING
        self._entries[name] = _Entry(answer, now + _kept_s(answer, again=again))
        self._entries.move_to_end(name)
        while len(self._entries) > self._most_names:
            self._entries.popitem(last=False)

    def pass_over(self, name: str, address: str) -> None:
        """Of what is known of ``name`` the address comes last from now on."""
        entry = self._entries.get(name)
        if entry is None:
            return
        last = sorted(entry.answer.addresses, key=lambda each: spelled_alike(each) == address)
        self._entries[name] = replace(entry, answer=replace(entry.answer, addresses=tuple(last)))


def _kept_s(answer: NameAnswer, *, again: bool) -> float:
    if answer.standing is Standing.UNANSWERED:
        return UNANSWERED_S
    most_s = MOST_S
    if answer.standing is Standing.MISSING:
        most_s = MOST_MISSING_S if again else FIRST_MISSING_S
    return max(LEAST_S, min(most_s, answer.ttl_s))
