"""What an examination found, for the terminal, for programs, and as curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from focused.evaluation.comparison import BASELINE
from focused.evaluation.examination.examiner import Result, Terms
from focused.evaluation.harvest_plot import draw_harvest
from focused.evaluation.wording import plain

_CURVE_POINTS = 100


def run_row(result: Result, terms: Terms) -> dict[str, Any]:
    """One run as JSON-able data; ``curve`` holds at most 100 pairs (fetched, on topic)."""
    trial, verdicts = result.trial, result.verdicts
    return {
        "web": result.web,
        "topic": trial.topic,
        "policy": trial.policy,
        "seeds": trial.seeds,
        "repeat": trial.repeat,
        "budget": terms.budget,
        "host_cap": terms.host_cap,
        "fetched": int(verdicts.size),
        "on_topic": int(verdicts.sum()),
        "relevant": result.relevant,
        "harvest": result.harvest,
        "recall": result.recall,
        "area": result.area,
        "hosts": result.hosts,
        "ended_because": result.ended_because,
        "simulated_s": result.simulated_s,
        "cpu_s": result.cpu_s,
        "curve": _curve(verdicts),
    }


def summary(results: Sequence[Result], terms: Terms) -> list[dict[str, Any]]:
    """One row per policy, in the order met: means over all its runs.

    ``ended_early`` counts runs that fetched less than the budget;
    ``ratio`` compares the mean harvest with the baseline's, None without one;
    ``cpu_s`` is the sum.
    """
    by_policy: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_policy[result.trial.policy].append(result)
    base = _mean([each.harvest for each in by_policy.get(BASELINE, [])])
    return [
        {
            "policy": policy,
            "runs": len(mine),
            "harvest": (harvest := _mean([each.harvest for each in mine])),
            "recall": _mean([each.recall for each in mine]),
            "area": _mean([each.area for each in mine]),
            "hosts": _mean([each.hosts for each in mine]),
            "ended_early": sum(each.verdicts.size < terms.budget for each in mine),
            "ratio": harvest / base if base else None,
            "simulated_s": _mean([each.simulated_s for each in mine]),
            "cpu_s": sum(each.cpu_s for each in mine),
        }
        for policy, mine in by_policy.items()
    ]


def summary_table(rows: Sequence[Mapping[str, Any]], terms: Terms) -> Table:
    """The summary for the terminal."""
    table = Table(title=f"Harvest by labels at {terms.budget:,} pages", title_justify="left")
    table.add_column("policy", no_wrap=True)
    for column in ("runs", "harvest", "recall", "area", "hosts", "ratio", "early", "minutes"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            str(row["policy"]),
            f"{row['runs']:,}",
            f"{row['harvest']:.1%}",
            f"{row['recall']:.1%}",
            f"{row['area']:.3f}",
            f"{row['hosts']:.1f}",
            "–" if row["ratio"] is None else f"{row['ratio']:.2f}",
            f"{row['ended_early']:,}",
            f"{row['simulated_s'] / 60:.1f}",
        )
    return table


def topics_table(results: Sequence[Result]) -> Table:
    """Mean harvest of each policy on each topic and kind of seeds."""
    starts = list(dict.fromkeys((each.trial.topic, each.trial.seeds) for each in results))
    cells: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each in results:
        cells[each.trial.policy, each.trial.topic, each.trial.seeds].append(each.harvest)
    policies = list(dict.fromkeys(each.trial.policy for each in results))
    table = Table(title="Harvest by topic, seeds and policy", title_justify="left")
    table.add_column("topic")
    table.add_column("seeds", no_wrap=True)
    for policy in policies:
        table.add_column(policy, justify="right")
    for topic, seeds in starts:
        harvests = (f"{_mean(cells[policy, topic, seeds]):.1%}" for policy in policies)
        table.add_row(Text(plain(topic)), seeds, *harvests)
    return table


def draw_results(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draw a PNG per topic and kind of seeds, the first repeat of each policy."""
    curves: defaultdict[tuple[str, str], dict[str, NDArray[np.bool_]]] = defaultdict(dict)
    for each in results:
        if each.trial.repeat == 0:
            curves[each.trial.topic, each.trial.seeds][each.trial.policy] = each.verdicts
    pictures = []
    for (topic, seeds), by_policy in curves.items():
        name = f"{topic}-{seeds}".replace(":", "-").replace("/", "-")
        pictures.append(folder / f"{name}.png")
        draw_harvest(by_policy, pictures[-1], title=f"{topic}, seeds: {seeds}")
    return pictures


def _curve(verdicts: NDArray[np.bool_]) -> list[list[int]]:
    if not verdicts.size:
        return []
    found = np.cumsum(verdicts)
    shown = np.unique(np.linspace(0, verdicts.size - 1, _CURVE_POINTS, dtype=int))
    return [[int(place) + 1, int(found[place])] for place in shown]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
