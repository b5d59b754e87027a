"""Fetch orders of twelve simulated crawls, to show that a change leaves them alone.

``python benchmarks/crawl_order.py --out FILE`` crawls four recorded webs, three crawls each:
``focused`` from seeds on and off topic, and one ordering that ranks links by the relevance of
pages. It writes a line for each crawl with the number of requests and a digest of their URLs in
order. ``--compare FILE`` exits with status 1 where an order differs from that in the file, which
another checkout wrote with the same models. Missing webs are built.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from harvest import PARTS, ROOT, Part, build

from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.runner import simulate_trial
from focused_lab.trials import OFF_TOPIC, ON_TOPIC, plan_trials

BY_RELEVANCE = {
    "docweb-medium": "shark",
    "foldoc": "best-first",
    "wordnet": "tag-path",
    "debian": "two-phase",
}
"""The ordering that each web is crawled with besides ``focused``."""


def main() -> int:
    """Crawl, write and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", default="500", help="pages per crawl (default: 500)")
    parser.add_argument("--out", type=Path, help="write the orders into this file")
    parser.add_argument("--compare", type=Path, help="compare with the orders in this file")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()
    options.compare = options.compare and options.compare.resolve()
    os.chdir(ROOT)
    lines = []
    for part in PARTS:
        build(part)
        for line in crawl_orders(part, ExperimentSettings(options.budget, 1)):
            print(line, flush=True)
            lines.append(line)
    if options.out is not None:
        options.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if options.compare is None:
        return 0
    before = options.compare.read_text(encoding="utf-8").splitlines()
    changed = [f"- {old}\n+ {new}" for old, new in zip(before, lines, strict=True) if old != new]
    print("\n".join(changed) or f"all {len(lines)} orders are the same")
    return 1 if changed else 0


def crawl_orders(part: Part, settings: ExperimentSettings) -> Iterator[str]:
    """Yield a line for each crawl of one web."""
    topics = [Path(f"topics/{part.topics[0]}.toml")]
    by_relevance = BY_RELEVANCE[part.web.name]
    with plan_trials(
        part.web,
        topics,
        settings,
        policies=("focused", by_relevance),
        seeds=(ON_TOPIC, OFF_TOPIC),
    ) as planned:
        for trial in planned.trials:
            if (trial.policy, trial.seeds) == (by_relevance, OFF_TOPIC):
                continue
            asked = simulate_trial(planned.contexts.for_trial(trial), trial).asked
            digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:16]
            start = f"{trial.web}\t{trial.topic}\t{trial.policy}\t{trial.seeds}"
            yield f"{start}\t{len(asked)}\t{digest}"


if __name__ == "__main__":
    sys.exit(main())
