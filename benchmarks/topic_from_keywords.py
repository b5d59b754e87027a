"""Quality of a classifier from a few keywords, two seeds and up to a hundred labels.

``python benchmarks/topic_from_keywords.py`` takes twelve topics of four recorded webs the way a
user does: ``focused topic new``, labels, ``focused retrain``, a crawl of 300 pages, more labels.
Crawls are simulated; the ground truth answers for the person, through the labelling session. Each
model is measured on pages that were neither samples nor labelled. Prints means over topics and
draws of seeds, and average precisions by topic. Without a model all three figures count as 0.

The ground truth also picks the two seeds, because a person knows which pages are on topic. Neither
the classifier nor the link scorer sees any other label.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from harvest import ROOT, build, parts_of
from joblib import Parallel, delayed
from numpy.random import default_rng
from sklearn.metrics import average_precision_score

from focused.archive.archive import PAGE_COLUMNS, PageRow
from focused.classifier.keyword_classifier import KeywordClassifier
from focused.classifier.model_comparison import MIN_COMPARED_PAGES
from focused.classifier.model_file import load_model
from focused.classifier.topic_classifier import LinearTopicClassifier, TopicClassifier
from focused.cli.new_topic import train_first_classifier
from focused.cli.topic_files import NewTopicOptions, write_topic_files
from focused.cli.training import retrain_from
from focused.errors import FocusedError
from focused.labelling.labelling_task import FetchedPages, find_labelling_task
from focused.labelling.page_selection import build_training_pool
from focused.labelling.session import LabellingSession
from focused.labels.label_file import LabelFile, Verdict, evaluation_labels, load_topic_labels
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.orderings import PolicyInputs, find_policy
from focused.reports.metrics import select_relevant_urls
from focused.scrapy_addon.crawl_models import training_urls
from focused.text.documents import HashedPage, hash_page
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.page import Fetched, Page
from focused.web.urls import normalize_url
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import SimulatedRun, constant_latency, simulate


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic: the recorded web, its on-topic categories, and the keywords a person would type."""

    web: str
    categories: tuple[str, ...]
    keywords: tuple[str, ...]


# The keywords were written before any result was seen, and have not been changed since.
TOPICS: Mapping[str, Wanted] = {
    "parallel": Wanted(
        "docweb-small",
        ("Top/Computers/Parallel_Computing",),
        ("parallel*", "concurren*", "thread*", "multiprocessing", "gpu*", "task queue*"),
    ),
    "cryptography": Wanted(
        "docweb-small",
        ("Top/Computers/Security/Cryptography",),
        ("cryptograph*", "encrypt*", "cipher*", "certificate*", "tls", "public key"),
    ),
    "statistics": Wanted(
        "docweb-small",
        ("Top/Science/Math/Statistics",),
        ("statistic*", "probability", "regression", "distribution*", "random number*"),
    ),
    "http": Wanted(
        "docweb-small",
        ("Top/Computers/HTTP",),
        ("http", "web server*", "proxy", "cookie*", "websocket*", "http request*"),
    ),
    "networking": Wanted(
        "foldoc",
        ("Top/Computers/Networking",),
        ("network*", "protocol*", "router*", "tcp/ip", "ethernet", "internet"),
    ),
    "mathematics": Wanted(
        "foldoc",
        ("Top/Computers/Mathematics",),
        ("mathematic*", "theorem*", "algebra*", "set theory", "function*", "logic"),
    ),
    "databases": Wanted(
        "foldoc",
        ("Top/Computers/Database",),
        ("database*", "sql", "query", "relational", "transaction*"),
    ),
    "music": Wanted(
        "wordnet",
        ("Top/Domains/Music",),
        ("music*", "musical instrument*", "song*", "melody", "orchestra", "compos*"),
    ),
    "law": Wanted(
        "wordnet",
        ("Top/Domains/Law",),
        ("law", "legal*", "court*", "classifier*", "crime*", "contract*"),
    ),
    "chemistry": Wanted(
        "wordnet",
        ("Top/Domains/Chemistry",),
        ("chemi*", "acid*", "compound*", "molecul*", "reaction*", "element*"),
    ),
    "games": Wanted(
        "debian",
        ("Top/Software/Games",),
        ("game*", "puzzle*", "arcade", "multiplayer", "board game*", "player*"),
    ),
    "maths": Wanted(
        "debian",
        ("Top/Software/Math",),
        ("mathematic*", "algebra*", "calculator*", "numerical*", "matrix", "geometry"),
    ),
}

SEEDS = 2
FIRST_PAGES = 100
"""Pages of the crawl around the seeds, as of ``focused topic new``."""

NEXT_PAGES = 300
"""Pages of the crawl that provides the labels beyond the first 20."""

LABELS = (0, 20, 50, 100)
MEASURES = ("precision", "recall", "average precision")
MAX_GOOD, MAX_OTHERS = 120, 480
"""Numbers of on-topic and of other pages to measure models on."""

_AGENT = "Benchmark/1.0 (+https://example.org/bot)"
_CHARS = 20_000


def main() -> int:
    """Run and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", default=",".join(TOPICS), help="names, with commas between")
    parser.add_argument("--draws", type=int, default=3, help="pairs of seeds for each topic")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.chdir(ROOT)
    names = options.topics.split(",")
    build(*parts_of(",".join(TOPICS[name].web for name in names)))
    found = Parallel(n_jobs=options.jobs)(
        delayed(measure_topic)(name, options.draws) for name in names
    )
    rows = pd.DataFrame([row for each in found for row in each])
    print(rows.groupby("labels")[list(MEASURES)].mean().round(2).to_string(), "\n")
    by_topic = rows.pivot_table("average precision", "topic", "labels", sort=False)
    print(f"average precision\n{by_topic.round(2).to_string()}")
    return 0


def measure_topic(name: str, draws: int) -> list[Mapping[str, object]]:
    """Return a row for each draw of seeds and number of labels."""
    rows: list[Mapping[str, object]] = []
    with RecordedWeb.open(Path("webs") / TOPICS[name].web) as web, ParsedWeb(web) as parsed:
        truth = TopicTruth(name, web, parsed)
        for draw in range(draws):
            with tempfile.TemporaryDirectory(prefix="focused-topic-") as folder:
                route = Route(truth, Path(folder), draw)
                rows += [{"topic": name, "draw": draw, **row} for row in route.measured_models()]
    return rows


class TopicTruth:
    """A topic's recorded web with its ground truth; ``good`` are the URLs on topic."""

    def __init__(self, name: str, web: RecordedWeb, parsed: ParsedWeb) -> None:
        self.name = name
        self.wanted = TOPICS[name]
        self.web = web
        self.parsed = parsed
        self.good = select_relevant_urls(web.labels, self.wanted.categories)
        self.measured = dict(self._measured_pages())

    def page(self, url: str) -> Page | None:
        """Return the parsed page of a URL, redirects followed; None without one."""
        for _ in range(5):
            outcome = self.parsed.answer(url, 0.0, 0.0)
            if isinstance(outcome, Fetched):
                page = self.parsed.parse(outcome)
                return page if isinstance(page, Page) else None
            target = getattr(outcome, "target", None)
            if target is None:
                return None
            url = target
        return None

    def _measured_pages(self) -> Iterator[tuple[str, HashedPage]]:
        """Yield pages to measure models on, on and off topic."""
        rng = default_rng(7)
        others = self.web.labels.keys() - self.good
        for urls, most in ((self.good, min(MAX_GOOD, len(self.good) // 2)), (others, MAX_OTHERS)):
            found: set[str] = set()
            for url in rng.permutation(sorted(urls)).tolist():
                page = self.page(url) if len(found) < most else None
                if page is not None and page.url not in found:
                    found.add(page.url)
                    yield page.url, hash_page(replace(page, text=page.text[:_CHARS]))


@dataclass(frozen=True)
class SimulatedPages(FetchedPages):
    """A simulated crawl's pages for a session, with the recorded web's responses."""

    web: RecordedWeb | None = None

    def response(self, page: PageRow) -> Fetched | None:
        """Return the server's response."""
        assert self.web is not None
        found = self.web.get(page.url)
        if found is None:
            return None
        return Fetched(page.url, found.status, found.headers, found.body)


class Route:
    """One person's way from keywords to a classifier."""

    def __init__(self, truth: TopicTruth, folder: Path, draw: int) -> None:
        self._truth = truth
        self._folder = folder
        self._draw = draw
        self.topic = self._write_topic()

    def measured_models(self) -> list[Mapping[str, float]]:
        """Train all models, then measure them on pages that none has seen."""
        crawl = self._crawl(KeywordClassifier(self._truth.wanted.keywords), FIRST_PAGES)
        self._train(crawl)
        models = {0: self._model()}
        for before, labels in pairwise(LABELS):
            self._label(crawl, labels - before)
            models[labels] = model = self._model()
            if before == 0 and model is not None:
                crawl = self._crawl(model, NEXT_PAGES, training_urls(self.topic))
        used = self._used_urls()
        pages = {url: page for url, page in self._truth.measured.items() if url not in used}
        good = np.array([url in self._truth.good for url in pages])
        return [
            {"labels": labels, **measures_of(model, list(pages.values()), good)}
            for labels, model in models.items()
        ]

    def _write_topic(self) -> Topic:
        seeds = self._folder / "seeds.txt"
        seeds.write_text("\n".join(self._seeds()) + "\n", encoding="utf-8")
        keywords = self._truth.wanted.keywords
        idea = NewTopicOptions(self._truth.name, keywords, seeds, _AGENT, self._folder)
        with redirect_stdout(StringIO()):
            write_topic_files(idea)
        return load_topic(idea.topic_file)

    def _seeds(self) -> list[str]:
        """Two on-topic pages with one of the keywords, as a search would find."""
        rng = default_rng([zlib.crc32(self._truth.name.encode()), self._draw])
        stems = [word.rstrip("*").strip().lower() for word in self._truth.wanted.keywords]
        pattern = re.compile("|".join(rf"\b{re.escape(stem)}" for stem in stems))
        found: list[str] = []
        for url in rng.permutation(sorted(self._truth.good)).tolist():
            page = self._truth.page(url)
            if page is not None and pattern.search(f"{page.title} {page.text}".lower()):
                found.append(url)
            if len(found) == SEEDS:
                break
        return found

    def _crawl(
        self, classifier: TopicClassifier, pages: int, known: frozenset[str] = frozenset()
    ) -> SimulatedRun:
        """Simulate a crawl of the topic; pages of ``known`` are no harvest."""
        prior = load_link_prior(f"without-{self._truth.wanted.web.partition('-')[0]}")
        inputs = PolicyInputs(classifier, Apprentice(classifier, prior))
        return simulate(
            self.topic,
            classifier,
            self._truth.parsed,
            find_policy("focused")(inputs),
            latency=constant_latency(0.1),
            training_urls=known,
            pages=pages,
        )

    def _train(self, crawl: SimulatedRun) -> None:
        """Train the first model on the pages of a crawl and the seeds."""
        fetched = crawl.pages.loc[crawl.pages["outcome"] == "fetched", "url"]
        seeds = [normalize_url(seed) or seed for seed in self.topic.seeds.urls]
        pages = {url: self._truth.page(url) for url in [*fetched, *seeds]}
        found = {url: page for url, page in pages.items() if page is not None}
        with redirect_stdout(StringIO()):
            try:
                train_first_classifier(self.topic, found)
            except FocusedError as error:
                print(f"{self._truth.name}: {error}", file=sys.stderr)

    def _label(self, crawl: SimulatedRun, count: int) -> None:
        """Label pages of a crawl and retrain."""
        task = find_labelling_task(self.topic.path, self.topic.training.labels)
        crawled = self._crawled_pages(crawl)
        assert self.topic.training.labels is not None
        with LabelFile(self.topic.training.labels) as file:
            pool = build_training_pool(crawled, task.classifier)
            session = LabellingSession(task, crawled, pool, file, None)
            for number in range(count):
                shown = session.current()
                if shown is None:
                    break
                verdict: Verdict = "yes" if shown.page.url in self._truth.good else "no"
                session.answer(shown.page.url, verdict, "", float(number))
        labels = load_topic_labels(self.topic.training)
        # With too few held-out pages a person replaces the model.
        replaces = len(evaluation_labels(labels)) < MIN_COMPARED_PAGES
        with redirect_stdout(StringIO()):
            try:
                retrain_from(self.topic, labels, self._truth.page, replace=replaces)
            except FocusedError as error:
                print(f"{self._truth.name}: {error}", file=sys.stderr)

    def _crawled_pages(self, crawl: SimulatedRun) -> SimulatedPages:
        rows = crawl.pages[(crawl.pages["outcome"] == "fetched") & ~crawl.pages["training"]]
        pages: dict[str, PageRow] = {}
        for row in rows.to_dict("records"):
            # Only pages with ground truth can be answered for.
            has_label = row["url"] in self._truth.web.labels
            if has_label and pd.isna(row["duplicate_of"]) and not pd.isna(row["relevance"]):
                known = {name: row[name] for name in PAGE_COLUMNS if name != "features"}
                pages[row["url"]] = PageRow(**known, features={})
        return SimulatedPages(self._folder, pages, 0, self._truth.web)

    def _model(self) -> LinearTopicClassifier | None:
        """The topic's current model, None without one."""
        path = self.topic.training.model
        return load_model(path).classifier if path.exists() else None

    def _used_urls(self) -> frozenset[str]:
        """The URLs of samples and labels."""
        listed = self.topic.training.directory[0].read_text("utf-8").splitlines()
        samples = [line.split("\t")[1] for line in listed if not line.startswith("#")]
        labels = [label.url for label in load_topic_labels(self.topic.training)]
        return frozenset([*(normalize_url(url) or url for url in samples), *labels])


def measures_of(
    model: LinearTopicClassifier | None, pages: Sequence[HashedPage], good: np.ndarray
) -> Mapping[str, float]:
    """Return a model's :data:`MEASURES` on pages that are ``good`` or not, 0 without a model."""
    if model is None:
        return dict.fromkeys(MEASURES, 0.0)
    found = [model.classify_hashed(page) for page in pages]
    called = np.array([each.on_topic for each in found])
    hits = int((called & good).sum())
    values = (
        hits / max(1, int(called.sum())),
        hits / max(1, int(good.sum())),
        float(average_precision_score(good, [each.relevance for each in found])),
    )
    return dict(zip(MEASURES, values, strict=True))


if __name__ == "__main__":
    sys.exit(main())
