"""Quality of the classifier by the number of good samples, beside scikit-learn's MultinomialNB.

``python benchmarks/classifier.py`` builds missing recorded webs, samples pages of six topics of
each, trains, and classifies held-out pages at the topic's natural share; the doc web once more with
whole hosts held out. Labels select the samples and measure the classifications. The table goes into
``benchmarks/results/classifier/``, with 95% bootstrap intervals over topics and draws. The rival is
``CountVectorizer`` and ``MultinomialNB`` with default parameters on the same pages; "words only" is
``training.embedding = false``.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from harvest import PARTS, ROOT, build
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from focused.classifier.calibration import BoolArray, FloatArray
from focused.classifier.calibration_fitting import compute_metrics
from focused.classifier.estimators import TrainingOptions
from focused.classifier.sample_texts import SampleWords, TrainingSamples
from focused.classifier.sklearn_classifier import page_to_text
from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.classifier.topic_training import fit_classifier
from focused.directory import is_in_category
from focused.errors import TrainingError
from focused.text.documents import hash_page, page_words
from focused.topic import ESTIMATORS
from focused.web.page import Page
from focused.web.urls import host_of
from focused_lab.analysis.inference import Estimate, bootstrap_weights, mean_estimates
from focused_lab.recorded_web.recorded_web import RecordedWeb, page_reader

SIZES = (10, 30, 100, 300)
TOPICS = {
    "docweb-medium": (
        *("Top/Computers/Databases", "Top/Computers/Security", "Top/Computers/HTTP"),
        *("Top/Computers/Networking", "Top/Science/Math/Statistics"),
        "Top/Computers/Text_Processing",
    ),
    "foldoc": tuple(
        f"Top/Computers/{name}"
        for name in (
            *("Networking", "Hardware", "Operating_System"),
            *("Storage", "Mathematics", "Database"),
        )
    ),
    "debian": tuple(
        f"Top/Software/{name}"
        for name in ("Games", "Sound", "Math", "Mail", "Electronics", "Hamradio")
    ),
    "wordnet": tuple(
        f"Top/Domains/{name}"
        for name in ("Music", "Law", "Chemistry", "Medicine", "Religion", "Military")
    ),
}
FIGURES = ("auc", "average_precision", "precision", "recall", "ece_before", "ece", "known")

_MAX_OTHERS = 1_500
_MAX_HELD_OUT = 1_500
_PAGES_READ = {"docweb-medium": 4_000, "foldoc": 9_000, "debian": 12_000, "wordnet": 8_000}
_HELD_OUT_PART = 0.4


@dataclass(frozen=True)
class Draw:
    """Indices of samples and of held-out pages, which have the natural ``share`` of good ones."""

    topic: str
    size: int
    number: int
    good: BoolArray
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    share: float


@dataclass(frozen=True)
class Pages:
    """A web's labelled pages with hosts, categories and word counts."""

    pages: tuple[Page, ...]
    hosts: tuple[str, ...]
    labels: tuple[frozenset[str], ...]
    counts: sp.csr_matrix


def main() -> int:
    """Build, train, measure, write and print; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    began_s = time.monotonic()
    parts = [part for part in PARTS if part.web.name in options.webs.split(",")]
    build(*parts)
    tasks = [(part.web, by_host) for part in parts for by_host in (False, True)]
    tasks = [task for task in tasks if not task[1] or task[0].name.startswith("docweb")]
    sizes = [int(size) for size in options.sizes.split(",")]
    measure = partial(_web_rows, options.repeat, sizes)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [row for part in pool.map(measure, tasks) for row in part]
    runs = pd.DataFrame(rows)
    _write(options.out, runs)
    print(f"{len(runs):,} models; this took {(time.monotonic() - began_s) / 60:.1f} minutes")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default=",".join(TOPICS), help="names of webs, commas")
    parser.add_argument("--repeat", type=int, default=2, help="draws a topic (default: 2)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="good samples, commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/classifier"))
    return parser.parse_args()


def _web_rows(repeat: int, sizes: Sequence[int], task: tuple[Path, bool]) -> list[dict[str, Any]]:
    folder, by_host = task
    web = _read(folder)
    name = folder.name + (", hosts held out" if by_host else "")
    rows = []
    for draw in _draws(web, TOPICS[folder.name], repeat, sizes, by_host):
        about = {"web": name, "positives": draw.size, "topic": draw.topic, "draw": draw.number}
        rows += [{**about, **row} for row in _evaluate(web, draw)]
    return rows


def _read(folder: Path) -> Pages:
    with RecordedWeb.open(folder) as web:
        urls = sorted(url for url in web.page_urls if web.labels.get(url))
        random.Random(7).shuffle(urls)
        read = page_reader(web)
        found = [(url, read(url)) for url in urls[: _PAGES_READ[folder.name]]]
        kept = [(url, page) for url, page in found if page is not None]
        return Pages(
            tuple(page for _, page in kept),
            tuple(host_of(url) for url, _ in kept),
            tuple(web.labels[url] for url, _ in kept),
            CountVectorizer().fit_transform(page_to_text(page) for _, page in kept).tocsr(),
        )


def _draws(
    web: Pages, topics: Sequence[str], repeat: int, sizes: Sequence[int], by_host: bool
) -> Iterator[Draw]:
    """Samples at the natural share, at most :data:`_MAX_OTHERS` others; held-out pages at that
    share.
    """
    for topic in topics:
        good = np.array(
            [any(is_in_category(one, topic) for one in labels) for labels in web.labels]
        )
        for size in sizes:
            for number in range(repeat):
                rng = np.random.default_rng([size, number])
                held_out = _held_out(web.hosts, rng) if by_host else rng.random(len(good)) < 0.4
                sides = [rng.permutation(np.flatnonzero(good == side)) for side in (True, False)]
                mine = [side[~held_out[side]] for side in sides]
                theirs = [side[held_out[side]] for side in sides]
                share = float(good.mean())
                others = min(_MAX_OTHERS, int(size * (1 - share) / share))
                if len(mine[0]) < size or min(map(len, theirs)) < 10:
                    continue
                train = np.concatenate([mine[0][:size], mine[1][:others]])
                test = np.concatenate(_at_share(theirs, share))
                yield Draw(topic, size, number, good, train, test, share)


def _held_out(hosts: Sequence[str], rng: np.random.Generator) -> BoolArray:
    names, place = np.unique(np.array(hosts), return_inverse=True)
    return np.asarray((rng.random(len(names)) < _HELD_OUT_PART)[place])


def _at_share(sides: Sequence[NDArray[np.intp]], share: float) -> list[NDArray[np.intp]]:
    total = min(_MAX_HELD_OUT, int(len(sides[0]) / share), int(len(sides[1]) / (1 - share)))
    counts = [round(total * share), total - round(total * share)]
    return [side[:count] for side, count in zip(sides, counts, strict=True)]


def _evaluate(web: Pages, draw: Draw) -> list[dict[str, Any]]:
    truth = draw.good[draw.test]
    rows = []
    for name, embedding in (("Focused", True), ("Focused, words only", False)):
        try:
            began_s = time.process_time()
            classifier, before = _trained(web, draw, embedding)
        except TrainingError as error:  # training failed: missing in the table
            print(f"{draw.topic}, {draw.size}, {draw.number}: {error}", file=sys.stderr)
            continue
        seconds = time.process_time() - began_s
        found = [classifier.classify(web.pages[i]) for i in draw.test]
        # The test pages are samples of the whole web, not the pages of a crawl.
        relevance = np.array([one.guiding_relevance for one in found])
        known = float(np.mean([one.known for one in found]))
        rows.append(
            _metrics(name, relevance, truth, classifier.calibration.threshold, before)
            | {"known": known, "training_cpu_s": seconds}
        )
    rows.append(_metrics("MultinomialNB", _baseline(web, draw), truth, 0.5, None))
    return rows


def _trained(web: Pages, draw: Draw, embedding: bool) -> tuple[LinearTopicClassifier, FloatArray]:
    """Our classifier, and the held-out pages' raw scores taken as probabilities."""
    train = draw.train.tolist()
    sample_words = SampleWords()
    for place in train:
        sample_words.add(*page_words(web.pages[place]), web.hosts[place])
    titles = tuple(web.pages[i].title for i in train)
    samples = TrainingSamples(
        categories=tuple(_category(web.labels[i], draw.topic) for i in train),
        good=draw.good[draw.train],
        weights=np.ones(len(train)),
        hosts=tuple(web.hosts[i] for i in train),
        titles=titles,
        leads=titles,
        languages=("",) * len(train),
        fetched=len(train),
        without_text=0,
        copies=0,
        contradictions=0,
        confirmed=np.ones(len(train), dtype=bool),
    )
    options = TrainingOptions(ESTIMATORS[0], prior=draw.share, embedding=embedding)
    classifier = fit_classifier(samples, sample_words, options).classifier
    hashed = [hash_page(web.pages[i]) for i in draw.test]
    vectors = map(classifier.vocabulary.vectorize_page, hashed)
    raw_scores = np.array(list(map(classifier.decision_function, vectors, hashed)))
    return classifier, 1 / (1 + np.exp(-raw_scores))


def _category(labels: frozenset[str], topic: str) -> str:
    ours = [one for one in sorted(labels) if is_in_category(one, topic)]
    return ours[0] if ours else min(labels)


def _baseline(web: Pages, draw: Draw) -> FloatArray:
    """MultinomialNB on the words that a CountVectorizer of the samples has."""
    rows = web.counts[draw.train]
    seen = np.flatnonzero(rows.getnnz(axis=0))
    bayes = MultinomialNB().fit(rows[:, seen], draw.good[draw.train])
    return np.asarray(bayes.predict_proba(web.counts[draw.test][:, seen])[:, 1])


def _metrics(
    classifier: str,
    relevance: FloatArray,
    truth: BoolArray,
    threshold: float,
    before: FloatArray | None,
) -> dict[str, Any]:
    quality = compute_metrics(relevance, truth, threshold)
    return {
        "classifier": classifier,
        "auc": quality.auc,
        "average_precision": quality.average_precision,
        "precision": quality.precision,
        "recall": quality.recall,
        "ece": quality.ece,
        "ece_before": None if before is None else compute_metrics(before, truth, 0.5).ece,
    }


def table(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per web, number of good samples and classifier; means with intervals as text."""
    rows = []
    for key, group in runs.groupby(["web", "positives", "classifier"], sort=False):
        weights = bootstrap_weights(group["topic"].tolist(), np.random.default_rng(0))
        values = group[list(FIGURES)].to_numpy(dtype=np.float64)
        spread = map(_spread, mean_estimates(weights, values))
        web, positives, classifier = key
        rows.append(
            {"web": web, "positives": positives, "classifier": classifier, "models": len(group)}
            | dict(zip(FIGURES, spread, strict=True))
            | {"worst_ece": f"{group['ece'].max():.3f}"}
        )
    return pd.DataFrame(rows).sort_values(["web", "positives"], kind="stable")


def _spread(estimate: Estimate | None) -> str | None:
    if estimate is None:
        return None
    if estimate.low is None:
        return f"{estimate.mean:.3f}"
    return f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _write(folder: Path, runs: pd.DataFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    runs.round(5).to_csv(folder / "runs.csv", index=False)
    means = table(runs)
    means.to_csv(folder / "table.csv", index=False)
    print(means.to_string(index=False))


if __name__ == "__main__":
    sys.exit(main())
