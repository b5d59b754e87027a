"""Quality of a classifier from a few keywords, two seeds and up to a hundred labels.

``python benchmarks/topic_from_keywords.py`` takes twelve topics of four recorded webs the way a
user does: ``focused topic new``, labels, ``focused retrain``, a crawl of 300 pages, more labels.
Crawls are simulated; the ground truth answers for the person, through the labelling session. Each
model is measured on pages that were neither samples nor labelled. Tables go into
``benchmarks/results/topic-from-keywords/``.

The ground truth also picks the two seeds, because a person knows which pages are on topic. Neither
the classifier nor the link scorer sees any other label.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from harvest import ROOT
from joblib import Parallel, delayed
from numpy.random import default_rng
from sklearn.metrics import average_precision_score

from focused.archive.warc_files import WarcPosition
from focused.classifier.keyword_classifier import KeywordClassifier
from focused.classifier.model_comparison import MIN_COMPARED_PAGES
from focused.classifier.model_file import load_model
from focused.classifier.topic_classifier import LinearTopicClassifier, TopicClassifier
from focused.cli.new_topic import train_first_classifier
from focused.cli.topic import NewTopicOptions, write_topic_files
from focused.cli.training import retrain_from
from focused.errors import FocusedError
from focused.files import write_atomically
from focused.labelling.labelling_task import CrawledPage, FetchedPages, find_labelling_task
from focused.labelling.page_selection import build_training_pool
from focused.labelling.session import LabellingSession
from focused.labels.label_file import LabelFile, Verdict, evaluation_labels, load_topic_labels
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.reports.metrics import select_relevant_urls
from focused.scrapy_addon.crawl_models import training_urls
from focused.text.documents import HashedPage, hash_page
from focused.topic.topic_file import load_topic
from focused.web.page import Fetched, Page
from focused.web.urls import normalize_url
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
MEASURED = (120, 480)
"""Maximum number of on-topic and of other pages to measure models on."""

_AGENT = "Benchmark/1.0 (+https://example.org/bot)"
_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Point:
    """A measured model; NaN without one.

    ``listed_good`` counts the pages proposed as on topic, ``listed_right`` those that are by ground
    truth. ``harvest`` is the share of on-topic pages of the crawl of 300 pages.
    """

    web: str
    topic: str
    draw: int
    labels: int
    yes: int
    listed_good: int
    listed_right: int
    precision: float
    recall: float
    average_precision: float
    harvest: float = float("nan")
    message: str = ""


@dataclass
class Open:
    """An open recorded web with its ground truth."""

    name: str
    web: RecordedWeb
    parsed: ParsedWeb
    _pages: dict[str, Page | None] = field(default_factory=dict)

    def page(self, url: str) -> Page | None:
        """The parsed page of a URL, redirects followed; None without one."""
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

    def on_topic(self, wanted: Wanted) -> frozenset[str]:
        """The URLs with one of the topic's categories."""
        return select_relevant_urls(self.web.labels, wanted.categories)


@dataclass(frozen=True)
class Simulated(FetchedPages):
    """A simulated crawl's pages for a session, with the recorded web's responses."""

    web: RecordedWeb | None = None

    def response(self, page: CrawledPage) -> Fetched | None:
        """The server's response."""
        assert self.web is not None
        found = self.web.get(page.url)
        if found is None:
            return None
        return Fetched(page.url, found.status, found.headers, found.body)


def main() -> int:
    """Run, write, print; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    began_s = time.monotonic()
    names = [name for name in TOPICS if TOPICS[name].web in options.webs.split(",")]
    if options.topics:
        names = [name for name in names if name in options.topics.split(",")]
    labels = tuple(int(count) for count in options.labels.split(","))
    draws = range(options.first, options.first + options.draws)
    found = Parallel(n_jobs=options.jobs)(
        delayed(points_of)(name, draws, labels, words_only=options.words_only) for name in names
    )
    points = pd.DataFrame([asdict(point) for each in found for point in each])
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / "points.csv", points.round(4).to_csv(index=False).encode())
    told = f"# From keywords to a classifier\n\n{_how()}\n\n{summary(points)}\n"
    write_atomically(options.out / "README.md", told.encode())
    print(told)
    print(f"{len(names) * options.draws} cases, {(time.monotonic() - began_s) / 60:.1f} minutes")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--webs", default="docweb-small,foldoc,wordnet,debian")
    parser.add_argument("--topics", help="names, with commas between them; default: all twelve")
    parser.add_argument("--draws", type=int, default=3, help="pairs of seeds for each topic")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--labels", default=",".join(map(str, LABELS)), help="0 first, commas")
    parser.add_argument("--words-only", action="store_true", help="training.embedding = false")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/topic-from-keywords"))
    return parser.parse_args()


def points_of(
    name: str, draws: Sequence[int], labels: Sequence[int], *, words_only: bool
) -> list[Point]:
    """The measured models of one topic, for each draw of seeds."""
    wanted = TOPICS[name]
    points: list[Point] = []
    with RecordedWeb.open(Path("webs") / wanted.web) as web, ParsedWeb(web) as parsed:
        opened = Open(wanted.web, web, parsed)
        good = opened.on_topic(wanted)
        measured = _measured_pages(opened, good)
        for draw in draws:
            with tempfile.TemporaryDirectory(prefix="focused-topic-") as folder:
                about = (name, wanted, opened, good, measured, draw, Path(folder))
                route = Route(*about, labels, words_only)
                points += route.points()
    return points


def _measured_pages(opened: Open, good: frozenset[str]) -> dict[str, HashedPage]:
    """Pages to measure on, on and off topic."""
    rng = default_rng(7)
    found: dict[str, HashedPage] = {}
    others = opened.web.labels.keys() - good
    for urls, most in ((good, min(MEASURED[0], len(good) // 2)), (others, MEASURED[1])):
        taken = 0
        for url in rng.permutation(sorted(urls)).tolist():
            page = opened.page(url) if taken < most else None
            if page is not None and page.url not in found:
                found[page.url] = hash_page(replace(page, text=page.text[:_CHARS]))
                taken += 1
    return found


@dataclass
class Route:
    """One person's way from keywords to a classifier."""

    name: str
    wanted: Wanted
    opened: Open
    good: frozenset[str]
    measured: Mapping[str, HashedPage]
    draw: int
    folder: Path
    labels: Sequence[int]
    words_only: bool
    used: set[str] = field(default_factory=set)
    models: list[tuple[int, int, LinearTopicClassifier | None, str]] = field(default_factory=list)
    harvest: float = float("nan")

    def points(self) -> list[Point]:
        """Train all models, then measure them on pages that none has seen."""
        first = self.begin()
        crawl = first
        for before, labels in pairwise(self.labels):
            self._keep(labels, self.label(crawl, labels - before))
            model = self.model()
            if labels == self.labels[1] and model is not None:
                crawl = self.crawl(model, NEXT_PAGES, training_urls(self.topic))
                rows = crawl.pages[(crawl.pages["outcome"] == "fetched") & ~crawl.pages["training"]]
                self.harvest = float(rows["url"].isin(self.good).mean())
        return self._measure()

    def begin(self) -> SimulatedRun:
        """Write the topic, crawl around two seeds and train the first model; return the crawl."""
        seeds = self._seeds()
        (self.folder / "seeds.txt").write_text("\n".join(seeds) + "\n", encoding="utf-8")
        idea = NewTopicOptions(
            self.name, self.wanted.keywords, self.folder / "seeds.txt", _AGENT, self.folder
        )
        told = StringIO()
        with redirect_stdout(told):
            write_topic_files(idea)
            if self.words_only:
                text = idea.topic_file.read_text("utf-8")
                text = text.replace("embedding = true", "embedding = false")
                idea.topic_file.write_text(text, "utf-8")
            self.topic = load_topic(idea.topic_file)
            classifier = KeywordClassifier(self.wanted.keywords)
            first = self.crawl(classifier, FIRST_PAGES)
            message = self._teach(first)
        self._keep(0, message)
        return first

    def _seeds(self) -> list[str]:
        """Two on-topic pages with one of the keywords, as a search would find."""
        rng = default_rng([zlib.crc32(self.name.encode()), self.draw])
        stems = [word.rstrip("*").strip().lower() for word in self.wanted.keywords]
        pattern = re.compile("|".join(rf"\b{re.escape(stem)}" for stem in stems))
        found: list[str] = []
        for url in rng.permutation(sorted(self.good)).tolist():
            page = self.opened.page(url)
            if page is not None and pattern.search(f"{page.title} {page.text}".lower()):
                found.append(url)
            if len(found) == SEEDS:
                break
        return found

    def crawl(
        self, classifier: TopicClassifier, pages: int, known: frozenset[str] = frozenset()
    ) -> SimulatedRun:
        """Simulate a crawl of the topic; pages of ``known`` are no harvest."""
        scorer = Apprentice(
            classifier, load_link_prior(f"without-{self.wanted.web.partition('-')[0]}")
        )
        return simulate(
            self.topic,
            classifier,
            self.opened.parsed,
            find_policy("focused")(PolicyInputs(classifier, scorer)),
            latency=constant_latency(0.1),
            training_urls=known,
            pages=pages,
        )

    def _teach(self, crawl: SimulatedRun) -> str:
        rows = crawl.pages[crawl.pages["outcome"] == "fetched"]
        own = {url: page for url in rows["url"] if (page := self.opened.page(url)) is not None}
        found = {**own}
        for seed in self.topic.seeds.urls:
            url = normalize_url(seed) or seed
            if url not in found and (page := self.opened.page(url)) is not None:
                found[url] = page
        try:
            train_first_classifier(self.topic, found)
        except FocusedError as error:
            return str(error)
        return ""

    def _retrain(self) -> str:
        labels = load_topic_labels(self.topic.training)
        told = StringIO()
        try:
            with redirect_stdout(told):
                # With too few held-out pages a person replaces the model.
                replaced = len(evaluation_labels(labels)) < MIN_COMPARED_PAGES
                status = retrain_from(self.topic, labels, self.opened.page, replace=replaced)
        except FocusedError as error:
            return str(error)
        return "the old model stays" if status else ""

    def label(self, crawl: SimulatedRun, count: int) -> str:
        """Label pages of a crawl and retrain; return why no new model came, or nothing."""
        subject = find_labelling_task(self.topic.path, self.topic.training.labels)
        crawled = self._crawled(crawl)
        assert self.topic.training.labels is not None
        with LabelFile(self.topic.training.labels) as file:
            pool = build_training_pool(crawled, subject.classifier)
            session = LabellingSession(subject, crawled, pool, file, None)
            for number in range(count):
                shown = session.current()
                if shown is None:
                    break
                verdict: Verdict = "yes" if shown.page.url in self.good else "no"
                session.answer(shown.page.url, verdict, "", float(number))
        return self._retrain()

    def _crawled(self, crawl: SimulatedRun) -> Simulated:
        rows = crawl.pages[(crawl.pages["outcome"] == "fetched") & ~crawl.pages["training"]]
        pages: dict[str, CrawledPage] = {}
        for row in rows.to_dict("records"):
            # Only pages with ground truth can be answered for.
            known = row["url"] in self.opened.web.labels
            if known and pd.isna(row["duplicate_of"]) and not pd.isna(row["relevance"]):
                pages[row["url"]] = CrawledPage(
                    url=row["url"],
                    host=row["host"],
                    title=row["title"],
                    score=row["score"],
                    relevance=row["relevance"],
                    on_topic=bool(row["on_topic"]),
                    place=WarcPosition("", 0),
                    fetched_at=0.0,
                )
        return Simulated(self.folder, pages, 0, self.opened.web)

    def model(self) -> LinearTopicClassifier | None:
        """Return the topic's current model, None without one."""
        path = self.topic.training.model
        return load_model(path).classifier if path.exists() else None

    def _keep(self, labels: int, message: str) -> None:
        given = load_topic_labels(self.topic.training)
        self.used.update(label.url for label in given)
        yes = sum(label.verdict == "yes" for label in given)
        self.models.append((labels, yes, self.model(), message))

    def _measure(self) -> list[Point]:
        listed = [
            line.split("\t")
            for line in self.topic.training.directory[0].read_text("utf-8").splitlines()
            if not line.startswith("#")
        ]
        self.used.update(normalize_url(line[1]) or line[1] for line in listed)
        good = [line[1] for line in listed if line[0] == self.topic.training.good[0]]
        pages = {url: words for url, words in self.measured.items() if url not in self.used}
        truth = np.array([url in self.good for url in pages])
        points = []
        for labels, yes, model, message in self.models:
            figures = (float("nan"),) * 3
            if model is not None:
                figures = _figures(model, list(pages.values()), truth)
            points.append(
                Point(
                    self.wanted.web,
                    self.name,
                    self.draw,
                    labels,
                    yes,
                    len(good),
                    sum(url in self.good for url in good),
                    *figures,
                    harvest=self.harvest,
                    message=message[:160],
                )
            )
        return points


def _figures(
    model: LinearTopicClassifier, pages: Sequence[HashedPage], truth: np.ndarray
) -> tuple[float, float, float]:
    judged = [model.classify_hashed(page) for page in pages]
    relevance = np.array([one.relevance for one in judged])
    called = np.array([one.on_topic for one in judged])
    hits = int((called & truth).sum())
    return (
        hits / max(int(called.sum()), 1),
        hits / max(int(truth.sum()), 1),
        float(average_precision_score(truth, relevance)),
    )


def _how() -> str:
    return (
        f"By `benchmarks/topic_from_keywords.py`: {SEEDS} seeds, a first crawl of {FIRST_PAGES} "
        f"pages, the first 20 labels of these, the others of a crawl of {NEXT_PAGES}. A model is "
        f"measured on up to {MEASURED[0]} pages on topic and {MEASURED[1]} others. "
        "Without a model all three figures count as 0."
    )


def summary(points: pd.DataFrame) -> str:
    """Markdown tables: means over topics and draws with their spread, then by topic."""
    points = points.assign(model=points["average_precision"].notna())
    measures = ["precision", "recall", "average_precision"]
    filled = points.fillna(dict.fromkeys(measures, 0.0))
    rows = []
    for labels, group in filled.groupby("labels"):
        row = [f"{labels}", f"{group['model'].mean():.0%}"]
        for measure in measures:
            low, high = group[measure].quantile([0.1, 0.9])
            row.append(f"{group[measure].mean():.2f} ({low:.2f} to {high:.2f})")
        row.append(f"{_spread(group):.2f}")
        rows.append(row)
    head = ["labels", "cases with a model", *(name.replace("_", " ") for name in measures),
            "spread over seeds"]  # fmt: skip
    parts = [
        "## All topics\n\nMean over topics and draws of seeds (10th to 90th percentile); the "
        "last column is the mean over topics of the standard deviation of average precision "
        f"over draws.\n\n{_table(head, rows)}"
    ]
    rows = []
    for (web, topic), group in filled.groupby(["web", "topic"], sort=False):
        first = group[group["labels"] == 0]
        right = first["listed_right"].sum() / max(first["listed_good"].sum(), 1)
        row = [str(web), str(topic), f"{first['listed_good'].mean():.0f}", f"{right:.0%}"]
        for _, at in group.groupby("labels"):
            row.append(
                f"{at['average_precision'].mean():.2f} ± {at['average_precision'].std():.2f}"
            )
        row.append(f"{first['harvest'].mean():.0%}")
        rows.append(row)
    head = ["web", "topic", "listed on topic", "rightly",
            *(f"after {n}" for n in sorted(set(points["labels"]))), "harvest"]  # fmt: skip
    parts.append(
        "## By topic\n\nPages proposed as on topic, how many rightly, average precision after so "
        "many labels (mean ± standard deviation over draws), and the share of on-topic pages "
        f"among {NEXT_PAGES} crawled after 20 labels.\n\n{_table(head, rows)}"
    )
    return "\n\n".join(parts)


def _spread(group: pd.DataFrame) -> float:
    return float(group.groupby("topic")["average_precision"].std(ddof=1).mean())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
