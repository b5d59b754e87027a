"""Sampling by site (Cho and Ntoulas, "Effective change detection using sampling", VLDB 2002).

Time is divided into cycles. In each cycle a sample of each site's pages is visited first; the share
of changed pages among them tells which sites are worth the rest of the budget. *Proportional* gives
a site visits by its share, *greedy* visits the best sites first, *adaptive* is greedy and ends a
site's sample when its interval leaves the threshold. No page's own history is used.
"""

from __future__ import annotations

import math
import struct
from dataclasses import astuple, dataclass
from typing import Literal

import xxhash

from focused.revisit.policy import RevisitInputs, Visit
from focused_lab.revisit_policies.allocation import optimal_sample_size
from focused_lab.revisit_policies.rate_models import PAGE, PackedRecords, PageLists, StoredPolicy

CYCLES_PER_INTERVAL = 4
"""A cycle is so short that the budget visits a quarter of the pages in it."""
_GREED = {"proportional": 1.0, "greedy": 2.0, "adaptive": 2.0}
"""How steeply a page's wait depends on its site's share of changed pages.

Proportional: the wait is inverse to the share. Greedy: beyond a cycle it grows with the square, so
that sites that are not worth the price wait long.
"""
_CONFIDENCE = 1.96
_ALL_SITES = 0
_KEY = struct.Struct("<II")


@dataclass(slots=True)
class _Site:
    """The sample of a site in its current cycle."""

    cycle: int = 0
    pages: int = 0
    wanted: int = 0
    """Pages of the sample; 0 when the sample is complete."""
    sampled: int = 0
    changed: int = 0
    share: float = 0.5
    """The share of changed pages in the last complete sample."""
    sampling: float = 1.0
    """The share of pages in the sample of this cycle."""

    def end_sample(self) -> None:
        """Take over the share of changed pages, if any page was visited."""
        if self.wanted and self.sampled:
            self.share = (self.changed + 0.5) / (self.sampled + 1)
        self.wanted = 0


class SiteSampling(StoredPolicy):
    """Visits a sample of each site, then the pages of the sites that changed most."""

    def __init__(
        self, inputs: RevisitInputs, mode: Literal["proportional", "greedy", "adaptive"]
    ) -> None:
        super().__init__(inputs)
        self._pages = PackedRecords(inputs.records, PAGE, "<dfI")  # last visit, weight, site
        self._samples = PackedRecords(inputs.records, "site", "<IIIIIff")
        self._cycle_s = inputs.mean_interval_s / CYCLES_PER_INTERVAL
        self._adaptive = mode == "adaptive"
        self._greed = _GREED[mode]
        self._lists = PageLists(inputs.records, "site-page")
        self._sites = PageLists(inputs.records, "site-list")
        self._cycle_begun = -1
        self._price = 0.0

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        """Add a page after its first fetch."""
        self._pages.put(page, at, weight, site)
        self._lists.add(site, page)
        known = self._site(site)
        if not known.pages:
            self._sites.add(_ALL_SITES, site)
        known.pages += 1
        self._put_site(site, known)

    def record(self, visit: Visit) -> None:
        """Count a page of the sample; a complete sample moves the pages of its site."""
        last_at, weight, site_number = self._pages.read(visit.page)
        cycle = self._cycle(visit.at)
        if cycle != self._cycle_begun:
            self._begin_cycle(cycle)
        site = self._site(site_number)
        if self._is_sampled(visit.page, last_at, site):
            site.sampled += 1
            site.changed += visit.changed
            if site.sampled >= site.wanted or (self._adaptive and self._is_decided(site)):
                site.end_sample()
                self._moved += self._lists.pages(site_number)
        self._pages.put(visit.page, visit.at, weight, site_number)
        self._put_site(site_number, site)

    def due_at(self, page: int, price: float) -> float:
        """Return a time in the past for a page of an open sample, else a time by its site."""
        self._price = price
        last_at, weight, site_number = self._pages.read(page)
        site = self._site(site_number)
        worth = self._unit_s * weight * site.share
        if worth <= 0:
            return math.inf
        if self._is_sampled(page, last_at, site):
            return (site.cycle - 1) * self._cycle_s  # before all others
        ratio = price / worth
        cycles = max(ratio, ratio**self._greed)
        return float(last_at + self._cycle_s * cycles)

    def value(self, page: int, at: float) -> float:
        """Return the value by the site's share; a page of a sample is worth the last price."""
        last_at, weight, site_number = self._pages.read(page)
        site = self._site(site_number)
        if weight and self._is_sampled(page, last_at, site):
            return self._price
        cycles = max(at - last_at, 0.0) / self._cycle_s
        waited = min(cycles, cycles ** (1 / self._greed))
        return float(self._unit_s * weight * site.share * waited)

    def change_probability(self, page: int, at: float) -> float:
        """Return the site's share of changed pages, for the cycles since the last visit."""
        last_at, _, site_number = self._pages.read(page)
        cycles = max(at - last_at, 0.0) / self._cycle_s
        return -math.expm1(-self._site(site_number).share * cycles)

    def remove(self, page: int) -> None:
        """Forget a page."""
        _, _, site_number = self._pages.read(page)
        super().remove(page)
        self._lists.remove(site_number, page)
        site = self._site(site_number)
        site.pages -= 1
        self._put_site(site_number, site)

    def _begin_cycle(self, cycle: int) -> None:
        """Draw a sample of each site; its pages are due at once."""
        self._cycle_begun = cycle
        numbers = list(self._sites.pages(_ALL_SITES))
        sites = [self._site(number) for number in numbers]
        for site in sites:
            if site.cycle != cycle:
                site.end_sample()  # the budget did not reach all of it
        shares = [site.share for site in sites]
        for number, site in zip(numbers, sites, strict=True):
            if site.cycle == cycle:  # begun before a restart
                continue
            size = optimal_sample_size(shares, site.pages, 1 / CYCLES_PER_INTERVAL)
            # A sample of two pages at least: one says nothing about a share.
            site.sampling = min(max(size, 2) / max(site.pages, 1), 1.0)
            site.cycle, site.wanted, site.sampled, site.changed = cycle, 1, 0, 0
            drawn = [
                page
                for page in self._lists.pages(number)
                if self._is_sampled(page, self._pages.read(page)[0], site)
            ]
            site.wanted = len(drawn)
            self._moved += drawn
            self._put_site(number, site)

    def _is_sampled(self, page: int, last_at: float, site: _Site) -> bool:
        """Whether the page is in the open sample of its site and was not visited for it yet."""
        if not site.wanted or self._cycle(last_at) >= site.cycle:
            return False
        drawn = xxhash.xxh32_intdigest(_KEY.pack(page, site.cycle))
        return bool(drawn < site.sampling * 2**32)

    def _is_decided(self, site: _Site) -> bool:
        """Whether the interval of the share excludes the share that is just worth the price."""
        threshold = self._price / self._unit_s
        share = (site.changed + 0.5) / (site.sampled + 1)
        error = _CONFIDENCE * math.sqrt(share * (1 - share) / site.sampled)
        return abs(share - threshold) > error

    def _cycle(self, at: float) -> int:
        return math.floor(at / self._cycle_s)

    def _site(self, number: int) -> _Site:
        sample = self._samples.get(number)
        return _Site() if sample is None else _Site(*sample)

    def _put_site(self, number: int, site: _Site) -> None:
        self._samples.put(number, *astuple(site))


def proportional(inputs: RevisitInputs) -> SiteSampling:
    """Visits by the share of changed pages."""
    return SiteSampling(inputs, "proportional")


def greedy(inputs: RevisitInputs) -> SiteSampling:
    """The best sites first."""
    return SiteSampling(inputs, "greedy")


def adaptive(inputs: RevisitInputs) -> SiteSampling:
    """The best sites first, with samples that end early."""
    return SiteSampling(inputs, "adaptive")
