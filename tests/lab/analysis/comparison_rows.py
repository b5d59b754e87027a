"""Runs of made-up policies whose figures are known beforehand."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def run(policy: str, harvest: float, **changed: Any) -> Row:
    """A run of 100 pages with that share on topic, found evenly, of 200 relevant ones."""
    budget = changed.get("budget", 100)
    fetched = changed.get("fetched", budget)
    on_topic = round(harvest * fetched)
    row = {
        "web": "web", "topic": "whales", "policy": policy, "seeds": "on-topic:5", "repeat": 0,
        "budget": budget, "host_cap": None, "fetched": fetched, "on_topic": on_topic,
        "relevant": 200, "harvest": on_topic / fetched, "recall": on_topic / 200,
        "area": harvest * fetched / budget, "hosts": 3, "crawl_and_stop": on_topic / 100,
        "crawl_and_stop_threshold": harvest, "half_recall_pages": None,
        "classifier_harvest": min(1.0, harvest + 0.1), "classifier_precision": 0.8,
        "classifier_recall": 0.9, "end_reason": "budget is spent", "simulated_s": 60.0,
        "cpu_s": 0.5, "peak_mb": 200.0,
        "curve": [[n, round(harvest * n)] for n in range(1, fetched + 1)],
    }  # fmt: skip
    return row | changed


def runs(harvests: Mapping[str, Mapping[str, Sequence[float]]], **changed: Any) -> list[Row]:
    """One run per harvest: ``{topic: {policy: [repeat 0, repeat 1, ...]}}``."""
    return [
        run(policy, harvest, topic=topic, repeat=repeat, **changed)
        for topic, policies in harvests.items()
        for policy, each in policies.items()
        for repeat, harvest in enumerate(each)
    ]


def document(rows: Sequence[Row], **changed: Any) -> dict[str, Any]:
    """The whole document of such runs."""
    return {
        "focused": "0.1.0",
        "settings": {"budget": "100", "latency_s": 0.2, "seed": 0, "repeat": 2},
        "webs": [{"name": "web", "folder": "webs/web", "pages": 1000, "hosts": 10}],
        "runs": list(rows),
        "skipped": [],
        "summary": [],
        "paired": [],
        "ranks": {},
    } | changed
