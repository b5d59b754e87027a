"""A revisit policy that believes the change signals of sources, as far as they have earned it.

A source announces pages that changed, and by its silence tells of the other pages that it lists
that they have not. With H the changes that the policy expects since the last visit, the probability
that a page changed is 1 - exp(-s H) after silence and 1 - a exp(-H) after an announcement;
:class:`focused.revisit.source_trust.SourceTrust` learns s and a. Silence holds until the list was
last read. The value of a visit is that of the policy times (p/q)², with p this probability and q
that of the policy.

A share of the visits ignores silence and so checks it.

Reading a list is a visit, too: its value is R u² / 2, with R the rate of changes that the list
announces and u the time since it was last read. So many days of staleness are saved by reading it
now rather than never, and the interval that follows is the square root of 2 times the price over R.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from focused.durations import DAY_S
from focused.revisit.policy import RecordStore, RevisitPolicy, Visit, due_times, weight_of
from focused.revisit.source_trust import COMMON_MEMORY, MEMORY, SourceTrust

_WAIT = 0.05
_MIN_TOLD = 0.75
"""Trust in silence is learned where the source told of so much of the time between two visits."""
_UNINFORMATIVE = 0.5
"""Announcements whose alarms have this factor or a larger one are ignored."""
EXPLORED = 0.1
"""Share of the visits that ignore silence."""
_COMMON = 0
"""Number of the record of all sources."""
_READINGS = 0.1
"""A list is read at most so often for each visit that its pages have in the mean."""
_RATE_DAYS = 60.0
"""The rate of announcements is a mean over about so many days."""
_LATEST = 0xFFFF_FFFE
_LEAST_WEIGHT = 1e-9
_FIRST_RATE = 1 / 300
"""Changes a day and listed page that are expected at first ..."""
_FIRST_DAYS = 20.0
"""... as if they were observed for so many days."""
_signal = struct.Struct("<IIIIIB")
_list = struct.Struct("<IIIIffB")


class PageSignal(NamedTuple):
    """What a source says of a page; times in whole seconds, 0 for never."""

    source: int
    """Whose trust counts: the lists of one kind of a host."""
    list_page: int
    visited_at: int
    stated_at: int
    """The time of the last change, as the source states it."""
    announced_at: int
    """When the crawl read of a change since the last visit."""
    is_ahead: bool
    """Whether the last visit found a change that was not announced so far."""


class ListReading(NamedTuple):
    """When a list of pages, such as a sitemap, was read, and how often it announces changes."""

    source: int
    read_at: int
    counted_at: int
    pages: int
    """How many pages it named when it was read last."""
    changes: float
    """Changes of its pages that visits found, decayed to ``counted_at``."""
    days: float
    """Time in which they were counted, decayed likewise."""
    flags: int
    """1: the policy below has the list among its pages; 2: its silence may be news."""

    @property
    def is_page(self) -> bool:
        """Whether the policy below has the list among its pages."""
        return bool(self.flags & 1)

    @property
    def is_complete(self) -> bool:
        """Whether the silence of the list may be news."""
        return bool(self.flags & 2)

    @property
    def rate(self) -> float:
        """Changes of its pages a day."""
        return self.changes / self.days

    def counted(self, at: float, changes: float) -> ListReading:
        """Count the changes that a visit at a time found."""
        days = max(at - self.counted_at, 0.0) / DAY_S
        left = math.exp(-days / _RATE_DAYS)
        return self._replace(
            counted_at=int(at),
            changes=left * self.changes + changes,
            days=left * self.days + (1.0 - left) * _RATE_DAYS,
        )


class SignalledPolicy:
    """A :class:`focused.revisit.policy.RevisitPolicy` over another one, with change signals."""

    def __init__(self, policy: RevisitPolicy, records: RecordStore, mean_interval_s: float) -> None:
        self.policy = policy
        self.follows_siblings = policy.follows_siblings
        self.forced_after = policy.forced_after
        self._records = records
        self._mean_s = mean_interval_s
        self._has_lists = records.get("lists", 0) is not None

    # Signals

    def add_list(
        self,
        page: int,
        source: int,
        pages: int,
        at: float,
        *,
        is_page: bool,
        is_complete: bool = True,
    ) -> None:
        """Add a list of ``pages`` pages that was read; its own page number is ``page``.

        ``source`` is the number, above 0, of the source that is trusted or not. ``is_page``: the
        policy below has the list among its pages. ``is_complete``: the list states changes of all
        pages that it names, so that its silence may be news; a feed shows its latest items alone.
        Of a list that is known only ``pages`` is new.
        """
        if not self._has_lists:
            self._has_lists = True
            self._records.put("lists", 0, b"\1")
        known = self._list(page)
        if known is not None:
            if known.pages != pages:
                self._records.put("list", page, _list.pack(*known._replace(pages=pages)))
        else:
            changes = pages * _FIRST_RATE * _FIRST_DAYS
            flags = is_page | is_complete << 1
            reading = ListReading(source, int(at), int(at), pages, changes, _FIRST_DAYS, flags)
            self._records.put("list", page, _list.pack(*reading))

    def state(
        self,
        page: int,
        list_page: int,
        visited_at: float,
        stated_at: float,
        at: float,
        clock_offset_s: float = 0.0,
    ) -> bool:
        """Record that a source lists a page, and when it changed last as the source states.

        Return whether that announces a change since the last visit: the caller computes the due
        time again. ``visited_at`` is the time of that visit, for a page without signals so far.
        ``clock_offset_s`` is how far the source's clock is ahead, by an estimate that may vary:
        statements are compared with each other as they are, with our times by our clock.
        """
        stated = int(min(max(stated_at, 1), _LATEST))
        known = self.signal(page)
        if known is None or self._is_better(list_page, known):
            source = self._reading(list_page).source
            if known is not None:
                visited_at = known.visited_at
            signal = PageSignal(source, list_page, int(visited_at), stated, 0, False)
            is_news = stated - clock_offset_s > visited_at
        else:
            # Clocks may be wrong and times rounded, so a later statement is news; but not the first
            # one after a visit that had found the change before it was announced.
            is_later = stated > known.stated_at
            is_found = known.is_ahead and stated - clock_offset_s <= known.visited_at
            is_news = is_later and not is_found
            signal = known._replace(
                stated_at=max(stated, known.stated_at), is_ahead=known.is_ahead and not is_later
            )
        if is_news:
            signal = signal._replace(announced_at=int(at))
        if signal != known:
            self._records.put("signal", page, _signal.pack(*signal))
        return is_news and self._alarms(signal) < _UNINFORMATIVE

    def unlist(self, page: int, list_page: int) -> None:
        """Record that a list does not name a page any more; the caller reschedules the page."""
        known = self.signal(page)
        if known is not None and known.list_page == list_page:
            self._records.delete("signal", page)

    def _is_better(self, list_page: int, known: PageSignal) -> bool:
        """Whether a list may tell more of a page by its silence than the one that named it."""
        reading, before = self._reading(list_page), self._reading(known.list_page)
        return reading.is_complete and not before.is_complete

    def signal(self, page: int) -> PageSignal | None:
        """Return what is known of a page's signals."""
        record = self._records.get("signal", page) if self._has_lists else None
        return None if record is None else PageSignal(*_signal.unpack(record))

    def trust(self, source: int) -> SourceTrust:
        """Return the trust in a source."""
        record = self._records.get("trust", source)
        if record is not None:
            return SourceTrust.unpack(record)
        return SourceTrust(memory=COMMON_MEMORY if source == _COMMON else MEMORY)

    # A revisit policy

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        reading = self._list(page)
        if reading is None or reading.is_page:
            self.policy.add(page, site, directory, weight, at)

    def record(self, visit: Visit) -> None:
        """Learn from a visit how far to believe the source, and what the policy learns."""
        page = visit.page
        reading = self._list(page)
        if reading is not None:
            reading = reading.counted(visit.at, 0.0)._replace(read_at=int(visit.at))
            self._records.put("list", page, _list.pack(*reading))
            if not reading.is_page:
                return
        signal = self.signal(page)
        if signal is None:
            self.policy.record(visit)
            return
        hazard = _hazard(self.policy.change_probability(page, visit.at))
        trust, common = self.trust(signal.source), self.trust(_COMMON)
        changed = visit.changed
        factor: float | None = None
        if signal.announced_at:
            if trust.alarms(common) > _UNINFORMATIVE:
                factor = 1.0
            trust, common = (each.after_alarm(hazard, changed=changed) for each in (trust, common))
        else:
            factor, share = self._silence(signal, visit.at), self._told(signal, visit.at)
            if share > _MIN_TOLD:
                silence, told, untold = trust.silence(common), share * hazard, (1 - share) * hazard
                trust, common = (
                    each.after_silence(silence, told, untold, changed=changed)
                    for each in (trust, common)
                )
        found = weight_of(self._records, page) if changed else 0.0
        counted = self._reading(signal.list_page).counted(visit.at, found)
        self._records.put("list", signal.list_page, _list.pack(*counted))
        self._records.put("trust", signal.source, trust.pack())
        self._records.put("trust", _COMMON, common._replace(doubt=0.0).pack())
        is_ahead = changed and not signal.announced_at
        signal = signal._replace(visited_at=int(visit.at), announced_at=0, is_ahead=is_ahead)
        self._records.put("signal", page, _signal.pack(*signal))
        self.policy.record(replace(visit, hazard_factor=factor))

    def due_at(self, page: int, price: float) -> float:
        """Return when the value of a visit reaches ``price``; infinity for never."""
        reading = self._list(page)
        if reading is not None:
            own = self._page_due_at(page, price) if reading.is_page else math.inf
            news = self._news_rate(reading) / max(weight_of(self._records, page), _LEAST_WEIGHT)
            days = math.sqrt(2 * price / news) if news > 0 else math.inf
            return min(own, reading.read_at + max(days * DAY_S, self._least_s(reading)))
        return self._page_due_at(page, price)

    def _page_due_at(self, page: int, price: float) -> float:
        due = self.policy.due_at(page, price)
        signal = self._telling(page)
        if signal is None:
            return due
        if signal.announced_at:
            value = self._page_value(page, signal.announced_at)
            lack = math.log(price / max(value, _LEAST_WEIGHT))
            if lack <= 0:
                return signal.visited_at  # before all that are due without an announcement
            # The value hardly changes with time: the more it lacks, the later.
            return min(due, signal.announced_at + lack * _WAIT * self._mean_s)
        return _delayed(due, signal.visited_at, self._factor(signal))

    def due_at_many(
        self, pages: Sequence[int], prices: Sequence[float], latest: float = math.inf
    ) -> Sequence[float]:
        """Return due times of pages of one site, accurate for those that are due about now."""
        dues = due_times(self.policy, pages, prices, latest)
        signals = [self._telling(page) for page in pages]
        return [
            due
            if signal is None or signal.announced_at
            else _delayed(due, signal.visited_at, self._factor(signal))
            for page, due, signal in zip(pages, dues, signals, strict=True)
        ]

    def value(self, page: int, at: float) -> float:
        """Return the value of a visit, in the unit of the price."""
        reading = self._list(page)
        if reading is not None:
            own = self._page_value(page, at) if reading.is_page else 0.0
            if at - reading.read_at < self._least_s(reading):
                return own
            days = (at - reading.read_at) / DAY_S
            news = self._news_rate(reading) / max(weight_of(self._records, page), _LEAST_WEIGHT)
            return max(own, news * days**2 / 2)
        return self._page_value(page, at)

    def _page_value(self, page: int, at: float) -> float:
        value = self.policy.value(page, at)
        signal = self._telling(page)
        if signal is None:
            return value
        own = self.policy.change_probability(page, at)
        if own <= 0.0:
            return value
        return value * (self._probability(signal, own, at) / own) ** 2

    def change_probability(self, page: int, at: float) -> float:
        """Return the probability that the page changed since its last visit."""
        own = self.policy.change_probability(page, at)
        signal = self._telling(page)
        return own if signal is None else self._probability(signal, own, at)

    def take_moved(self) -> Iterable[int]:
        """Return the pages whose due times moved."""
        return self.policy.take_moved()

    def remove(self, page: int) -> None:
        """Forget a page."""
        self._records.delete("signal", page)
        self.policy.remove(page)

    def _telling(self, page: int) -> PageSignal | None:
        """Return the signal of a page if the next visit follows it."""
        signal = self.signal(page)
        if signal is None:
            return None
        if signal.announced_at:
            return signal if self._alarms(signal) < _UNINFORMATIVE else None
        return None if _explores(page, signal) else signal

    def _probability(self, signal: PageSignal, own: float, at: float) -> float:
        if signal.announced_at:
            return 1.0 - self._alarms(signal) * (1.0 - own)
        return -math.expm1(-_hazard(own) * self._silence(signal, at))

    def _alarms(self, signal: PageSignal) -> float:
        return self.trust(signal.source).alarms(self.trust(_COMMON))

    def _factor(self, signal: PageSignal) -> float:
        return self.trust(signal.source).silence(self.trust(_COMMON))

    def _silence(self, signal: PageSignal, at: float) -> float:
        """Return the factor of the hazard at a time: silence holds until the last reading."""
        told = self._told(signal, at)
        return 1.0 - told * (1.0 - self._factor(signal)) if told > 0 else 1.0

    def _told(self, signal: PageSignal, at: float) -> float:
        """Return the share of the time since the last visit that the source tells of."""
        if signal.stated_at % DAY_S == 0 and signal.visited_at < signal.stated_at + DAY_S:
            return 0.0  # A date tells nothing of changes later that day.
        since = max(at - signal.visited_at, 1.0)
        return min(max((self._read_at(signal) - signal.visited_at) / since, 0.0), 1.0)

    def _read_at(self, signal: PageSignal) -> int:
        reading = self._reading(signal.list_page)
        return reading.read_at if reading.is_complete else 0

    def _list(self, page: int) -> ListReading | None:
        """Return the record of a list; None for other pages."""
        record = self._records.get("list", page) if self._has_lists else None
        return None if record is None else ListReading(*_list.unpack(record))

    def _reading(self, list_page: int) -> ListReading:
        reading = self._list(list_page)
        if reading is None:
            raise KeyError(list_page)
        return reading

    def _least_s(self, reading: ListReading) -> float:
        """Return the least time between two readings, by the budget of the pages it names."""
        return self._mean_s / (_READINGS * max(reading.pages, 1))

    def _news_rate(self, reading: ListReading) -> float:
        """Return how many changes a day the list is expected to announce, false ones left out."""
        trust, common = self.trust(reading.source), self.trust(_COMMON)
        return reading.rate * trust.recall * (1.0 - trust.alarms(common))


def _hazard(probability: float) -> float:
    return -math.log1p(-min(probability, 1.0 - 1e-9))


def _delayed(due: float, since: float, silence: float) -> float:
    """Return when a page is due whose hazard is multiplied by ``silence``.

    The value of a visit grows about as (H u), with H proportional to u: that with s H reaches the
    price after 1/s times as long.
    """
    return since + max(due - since, 0.0) / silence


def _explores(page: int, signal: PageSignal) -> bool:
    """Whether the next visit of a page ignores silence; drawn anew for each visit."""
    drawn = (page * 0x9E3779B1 ^ signal.visited_at) * 0x85EBCA6B & 0xFFFF_FFFF
    return (drawn ^ drawn >> 15) * 0xC2B2AE35 % 2**32 < EXPLORED * 2**32
