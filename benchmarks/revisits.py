"""Measure the revisit schedule on disk: time per revisit and bytes per page.

    python benchmarks/revisits.py --pages 1000000

Adds the pages of many sites and revisits some. Prints the CPU time of a revisit (take, record,
schedule, commit; median over rounds) and the size of the state's file. After a change the pages of
the site are valued again, so the time depends on ``--changed`` and ``--pages-per-site``.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
from pathlib import Path

from focused.durations import DAY_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.hazard import Hazard
from focused.revisit.policy import RevisitInputs, Visit
from focused.revisit.schedule import RevisitSchedule
from focused.revisit.signalled_policy import SignalledPolicy
from focused.storage.environment import data_file
from focused.storage.state_store import StateStore

MEAN_INTERVAL_S = 30 * DAY_S
PAGES_PER_COMMIT = 100
ROUNDS = 10


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--pages-per-site", type=int, default=400)
    parser.add_argument("--pages-per-directory", type=int, default=20)
    parser.add_argument("--visits", type=int, default=50_000)
    parser.add_argument("--changed", type=float, default=0.04, help="share of changed pages")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _Run(Path(folder) / "state", options).report()


class _Run:
    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._options = options
        self._random = random.Random(options.seed)
        self._store = StateStore.open(folder, {})
        self._records = TableRecords(self._store.tables)
        hazard = Hazard(RevisitInputs(MEAN_INTERVAL_S, self._records))
        policy = SignalledPolicy(hazard, self._records, MEAN_INTERVAL_S)  # as in a crawl
        self._schedule = RevisitSchedule(
            policy, self._records, self._records, mean_interval_s=MEAN_INTERVAL_S
        )
        self._pages: int = options.pages
        self._directories: int = max(options.pages_per_site // options.pages_per_directory, 1)
        self._sites: int = options.pages // options.pages_per_site + 1
        self._last: list[float] = []
        self._now = 1_700_000_000.0

    def report(self) -> None:
        pages = self._pages
        step_s = MEAN_INTERVAL_S / pages
        began = time.process_time()
        for page in range(pages):
            self._now += step_s
            self._schedule.add(page, self._site(page), self._directory(page), 1.0, self._now)
            self._last.append(self._now)
            self._commit_sometimes(page)
            if page == 0:
                # The price of a settled crawl: a new one takes a mean interval to find it, and
                # puts most pages back meanwhile.
                value = self._schedule.policy.value(page, self._now + MEAN_INTERVAL_S)
                self._schedule._log_price = math.log(value)
        added_s = (time.process_time() - began) / pages
        print(f"pages {pages:,}; added in {added_s * 1e6:.1f} us each")
        each, changed = self._options.visits // ROUNDS, self._options.changed
        self._visit(2 * each, step_s, changed)  # until the price has settled
        took = [self._visit(each, step_s, changed) for _ in range(ROUNDS)]
        print(
            f"{changed:.0%} of the pages changed: {statistics.median(took) * 1e6:.1f} us a revisit "
            f"({min(took) * 1e6:.1f} to {max(took) * 1e6:.1f})"
        )
        print(f"{self._bytes() / len(self._schedule):.0f} bytes a page")

    def _visit(self, visits: int, step_s: float, changed: float) -> float:
        began = time.process_time()
        for number in range(visits):
            self._now += step_s
            page = self._schedule.take(self._now)
            if page is None:
                raise AssertionError("no page is left")
            self._schedule.record(
                Visit(
                    page,
                    self._site(page),
                    self._directory(page),
                    self._now,
                    self._last[page],
                    changed=self._random.random() < changed,
                )
            )
            self._last[page] = self._now
            self._commit_sometimes(number)
        return (time.process_time() - began) / visits

    def _commit_sometimes(self, number: int) -> None:
        if number % PAGES_PER_COMMIT == 0:
            self._records.save()
            self._store.commit()

    def _site(self, page: int) -> int:
        return page % self._sites

    def _directory(self, page: int) -> int:
        number = page // self._sites % self._directories
        return self._site(page) * self._directories + number

    def _bytes(self) -> int:
        self._records.save()
        self._store.close()
        return data_file(self._folder).stat().st_size


if __name__ == "__main__":
    main()
