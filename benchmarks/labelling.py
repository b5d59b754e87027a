"""How many labels a classifier needs, and whether it matters which pages are labelled.

``python benchmarks/labelling.py`` starts each topic with 10 good samples and 30 others, lets the
recorded web's labels answer for a person, and trains after every ten answers: once with random
pages, once with those selected by :mod:`focused.labelling.page_selection`. Models are measured on
held-out pages. Curves go into ``benchmarks/results/labelling/``. No model and no selection sees a
label that was not asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from harvest import ROOT
from joblib import Parallel, delayed
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve

from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.classifier.topic_training import train_topic
from focused.errors import TrainingError
from focused.files import write_atomically
from focused.labelling.page_selection import PagePool, PageSelector, page_vectors
from focused.labels.label_file import Label
from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.reports.metrics import select_relevant_urls
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Page
from focused.web.urls import host_of

TOPICS: Mapping[str, tuple[str, ...]] = {
    "docweb-small": ("parallel-computing", "statistics", "databases", "security"),
    "foldoc": ("foldoc/database", "foldoc/networking", "foldoc/mathematics"),
    "wordnet": ("wordnet/music", "wordnet/law"),
    "debian": ("debian/games", "debian/math"),
}
START = (10, 30)
"""Good samples and others of each model before the first label."""

POOL = 800
"""Number of pages to select from, and of pages to measure on."""

GOOD_SHARE = 0.2
"""Share on topic among both, about that of a crawl in doubt."""

MAX_LABELS = 200
STEP = 10
TARGET_LABELS = 80
RECALL = 0.7
_MAX_CHARS = 10_000
MEASURES = ("precision_at_recall", "average_precision", "precision_at_threshold")


@dataclass(frozen=True, slots=True)
class Case:
    """One topic's random pages: start, pool and held-out ones are disjoint."""

    topic: Topic
    pages: Mapping[str, Page]
    start: tuple[str, ...]
    pool: tuple[str, ...]
    held_out: tuple[str, ...]
    good: frozenset[str]


@dataclass(frozen=True, slots=True)
class Point:
    """A measured model. ``labels`` counts those given, without the initial samples."""

    web: str
    topic: str
    draw: int
    choice: str
    labels: int
    good_labels: int
    precision_at_recall: float
    average_precision: float
    precision_at_threshold: float
    recall_at_threshold: float


def main() -> int:
    """Run, write, print; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    began_s = time.monotonic()
    jobs = [
        (web, topic, draw)
        for web, topics in TOPICS.items()
        if web in options.webs.split(",")
        for topic in topics
        for draw in range(options.draws)
    ]
    curves = Parallel(n_jobs=options.jobs)(
        delayed(curves_of)(web, topic, draw, options.choices.split(","))
        for web, topic, draw in jobs
    )
    points = pd.DataFrame([asdict(point) for curve in curves for point in curve])
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / "points.csv", points.round(4).to_csv(index=False).encode())
    print(summary(points))
    print(f"{len(jobs)} cases, {(time.monotonic() - began_s) / 60:.1f} minutes")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default=",".join(TOPICS), help="names of webs, commas")
    parser.add_argument("--choices", default="random,ours", help="of: " + ", ".join(METHODS))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/labelling"))
    return parser.parse_args()


def curves_of(web: str, name: str, draw: int, choices: Sequence[str]) -> list[Point]:
    """The learning curves of one topic and draw, one per way of selecting."""
    case = _case(Path("webs") / web, load_topic(Path(f"topics/{name}.toml")), draw)
    points = []
    for choice in choices:
        rng = default_rng([draw, 1])
        points += [
            replace(point, web=web, draw=draw, choice=choice)
            for point in _curve(case, METHODS[choice], rng)
        ]
    return points


def _case(folder: Path, topic: Topic, draw: int) -> Case:
    rng = default_rng([draw, 0])
    with RecordedWeb.open(folder) as web:
        good = select_relevant_urls(web.labels, topic.training.good)
        ours, others = (
            list(rng.permutation(sorted(urls))) for urls in (good, web.labels.keys() - good)
        )
        read = page_reader(web)
        pages: dict[str, Page] = {}
        size = int(min(POOL, (len(ours) - START[0]) / 2 / GOOD_SHARE))

        def take(urls: list[str], count: int) -> list[str]:
            taken: list[str] = []
            while len(taken) < count and urls:
                url = str(urls.pop())
                page = read(url)
                if page is not None and url not in pages:
                    pages[url] = replace(page, text=page.text[:_MAX_CHARS], links=())
                    taken.append(url)
            return taken

        start = take(ours, START[0]) + take(others, START[1])
        good_share = int(size * GOOD_SHARE)
        pool, held_out = (
            take(ours, good_share) + take(others, size - good_share) for _ in range(2)
        )
    return Case(topic, pages, tuple(start), tuple(pool), tuple(held_out), good)


SelectionMethod = Callable[[Case, Generator], "Selection"]


@dataclass
class Selection:
    """A way of selecting: ``next(model)`` returns a page of the pool, ``add_answer`` receives the
    label.
    """

    next: Callable[[LinearTopicClassifier], int]
    add_answer: Callable[[int, bool], None]


def _randomly(case: Case, rng: Generator) -> Selection:
    order = iter(rng.permutation(len(case.pool)).tolist())
    return Selection(next=lambda _: next(order), add_answer=lambda *_: None)


def _ours(case: Case, rng: Generator) -> Selection:
    pages = [case.pages[url] for url in case.pool]
    pool = PagePool(tuple(host_of(url) for url in case.pool), page_vectors(pages))
    choice = PageSelector(pool, np.full(len(pages), 0.5), 0.5, good=START[0])
    seen: list[LinearTopicClassifier] = []

    def chosen(model: LinearTopicClassifier) -> int:
        if not seen or seen[0] is not model:
            seen[:] = [model]
            choice.relevance = np.array([model.classify(page).relevance for page in pages])
            choice.threshold = model.threshold
        found = choice.next()
        assert found is not None, "the pool is larger than the number of labels"
        return found[0]

    return Selection(
        next=chosen, add_answer=lambda place, good: choice.add_label(place, "yes" if good else "no")
    )


def _uncertain(case: Case, rng: Generator) -> Selection:
    """Nearest to the threshold, as most tools do."""
    asked: set[int] = set()

    def chosen(model: LinearTopicClassifier) -> int:
        distance = [
            abs(model.classify(case.pages[url]).relevance - model.threshold) for url in case.pool
        ]
        return next(int(i) for i in np.argsort(distance, kind="stable") if int(i) not in asked)

    return Selection(next=chosen, add_answer=lambda place, _: asked.add(place))


def _highest(case: Case, rng: Generator) -> Selection:
    """Most relevant first, as somebody does who reads the crawl's list from the top."""
    asked: set[int] = set()

    def chosen(model: LinearTopicClassifier) -> int:
        relevance = [-model.classify(case.pages[url]).relevance for url in case.pool]
        return next(int(i) for i in np.argsort(relevance, kind="stable") if int(i) not in asked)

    return Selection(next=chosen, add_answer=lambda place, _: asked.add(place))


METHODS: Mapping[str, SelectionMethod] = {
    "random": _randomly,
    "ours": _ours,
    "uncertain": _uncertain,
    "high": _highest,
}


def _curve(case: Case, method: SelectionMethod, rng: Generator) -> list[Point]:
    selection = method(case, rng)
    labelled: list[str] = []
    points = []
    model: LinearTopicClassifier | None = None
    for count in range(0, min(MAX_LABELS, len(case.pool)) + 1, STEP):
        model = _trained(case, labelled) or model
        assert model is not None, "ten good samples and thirty others always make a model"
        points.append(_measured(case, model, labelled))
        for _ in range(STEP if count < MAX_LABELS else 0):
            place = selection.next(model)
            url = case.pool[place]
            selection.add_answer(place, url in case.good)
            labelled.append(url)
    return points


def _trained(case: Case, labelled: Sequence[str]) -> LinearTopicClassifier | None:
    """A model of the initial samples and the labels; None when training fails."""
    good = case.topic.training.good[0]
    lines = [f"{good if url in case.good else 'Top/Other'}\t{url}\t\t\n" for url in case.start]
    labels = [
        Label(url=url, verdict="yes" if url in case.good else "no", role="training", at=0.0)
        for url in labelled
    ]
    with tempfile.TemporaryDirectory() as folder:
        directory = write_atomically(Path(folder) / "samples.tsv", "".join(lines).encode())
        topic = replace(
            case.topic, training=replace(case.topic.training, directory=(directory,), good=(good,))
        )
        try:
            return train_topic(topic, case.pages.get, now=0.0, labels=labels).classifier
        except TrainingError:
            return None


def _measured(case: Case, model: LinearTopicClassifier, labelled: Sequence[str]) -> Point:
    judged = [model.classify(case.pages[url]) for url in case.held_out]
    relevance = np.array([one.relevance for one in judged])
    called = np.array([one.on_topic for one in judged])
    truth = np.array([url in case.good for url in case.held_out])
    precision, recall, _ = precision_recall_curve(truth, relevance)
    hits = int((truth & called).sum())
    return Point(
        web="",
        topic=case.topic.name,
        draw=0,
        choice="",
        labels=len(labelled),
        good_labels=sum(url in case.good for url in labelled),
        precision_at_recall=float(precision[recall >= RECALL].max()),
        average_precision=float(average_precision_score(truth, relevance)),
        precision_at_threshold=hits / max(int(called.sum()), 1),
        recall_at_threshold=hits / max(int(truth.sum()), 1),
    )


def summary(points: pd.DataFrame) -> str:
    """Markdown tables: medians over topics and draws, and the labels needed."""
    parts = []
    for measure in MEASURES:
        table = points.pivot_table(
            index="labels", columns="choice", values=measure, aggfunc="median"
        )
        shown = table.loc[[n for n in (0, 20, 40, 60, 80, 120, 160, 200) if n in table.index]]
        parts.append(f"## {measure}\n\n{_markdown(shown)}")
    parts.append(f"## Labels needed for what random has with {MAX_LABELS}\n\n{needed(points)}")
    return "\n\n".join(parts)


def needed(points: pd.DataFrame) -> str:
    """For each way and measure: labels needed to reach random's final level.

    A case is a topic and a draw. A curve reaches a level when the median of three neighbouring
    models does. 95% bootstrap intervals over topics.
    """
    rows = []
    for measure in MEASURES:
        for choice in points.choice.unique():
            counts = _needed_by_case(points, measure, choice)
            low, high = _interval(counts)
            within = float((counts <= TARGET_LABELS).mean())
            lead = _lead(points, measure, choice)
            rows.append((measure, choice, counts.median(), low, high, within, *lead))
    names = ["measure", "choice", "median labels", "low", "high", f"share within {TARGET_LABELS}",
             f"lead at {TARGET_LABELS}", "lead low", "lead high"]  # fmt: skip
    return _markdown(pd.DataFrame(rows, columns=names).set_index("measure"))


def _needed_by_case(points: pd.DataFrame, measure: str, choice: str) -> pd.Series:
    """Labels needed, by topic and draw; one step beyond the last if never reached."""
    found = {}
    for case, curves in points.groupby(["topic", "draw"]):
        level = _smooth(curves, "random", measure).iloc[-1]
        ours = _smooth(curves, choice, measure)
        reached = ours.index[ours >= level]
        found[case] = reached[0] if len(reached) else MAX_LABELS + STEP
    return pd.Series(found)


def _smooth(curves: pd.DataFrame, choice: str, measure: str) -> pd.Series:
    curve = curves[curves.choice == choice].set_index("labels")[measure].sort_index()
    return curve.rolling(3, center=True, min_periods=2).median()


def _lead(points: pd.DataFrame, measure: str, choice: str) -> tuple[float, float, float]:
    """Mean of the measure with 80 labels minus random's with 200, and its interval."""
    found = {}
    for case, curves in points.groupby(["topic", "draw"]):
        ours, theirs = (_smooth(curves, name, measure) for name in (choice, "random"))
        found[case] = ours.loc[TARGET_LABELS] - theirs.iloc[-1]
    values = pd.Series(found)
    return float(values.mean()), *_interval(values, np.mean)


def _interval(
    values: pd.Series, of: Callable[[NDArray[np.float64]], np.floating] = np.median
) -> tuple[float, float]:
    """95% bootstrap interval of a statistic over cases; topics are resampled with all their
    draws.
    """
    rng = default_rng(0)
    groups = [group.to_numpy(dtype=float) for _, group in values.groupby(level=0)]
    drawn = [
        of(np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))]))
        for _ in range(2_000)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _markdown(table: pd.DataFrame) -> str:
    flat = table.reset_index()
    lines = [list(flat.columns), ["---"] * len(flat.columns)]
    lines += [[_cell(cell) for cell in row] for row in flat.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
