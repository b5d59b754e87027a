"""Training: from a topic's directory and labels to a calibrated model with its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from focused.directory.background import is_background
from focused.directory.entry import DirectoryEntry, own_address
from focused.directory.samples import samples_digest, training_samples
from focused.directory.sides import SampleSet
from focused.errors import TrainingError
from focused.labels.label import Label
from focused.labels.roles import teaching
from focused.learning.calibrating import calibrate
from focused.learning.categories import merged_categories
from focused.learning.corpus import Corpus
from focused.learning.documents import Vocabulary
from focused.learning.doubts import doubts
from focused.learning.estimators import fit_weights
from focused.learning.keyword_judge import KeywordWeights
from focused.learning.keyword_prior import fit_with_keywords
from focused.learning.labelled import LabelCounts, with_labels
from focused.learning.plan import Plan
from focused.learning.report import SampleCounts, TrainedModel, TrainingReport, Trial
from focused.learning.samples import FetchPage, Progress, Remark, Samples, gather
from focused.learning.thresholds import Wish
from focused.learning.topic_classifier import TopicClassifier
from focused.learning.trial import Material, good_ratio, taxonomy_of
from focused.learning.with_background import with_background
from focused.topic import Topic
from focused.web.url import normalise

MIN_OTHERS = 5
"""With fewer other samples nothing tells what the topic is not."""

_LABELS_A_PAGE = 10
"""With so many more labels, each label counts for one listed page more: see _label_weight."""

MAX_DRAWN = 20_000
"""So many samples at most are seen by regressions and trials; naive Bayes counts them all."""

_TOP_WORDS = 30


@dataclass(frozen=True, slots=True)
class Fitted:
    """A judge, the trial it is calibrated on, and its best words with their gains."""

    classifier: TopicClassifier
    trial: Trial
    top_words: tuple[tuple[str, float], ...]


def train_topic(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    seed: int = 0,
    prior: float | None = None,
    labels: Iterable[Label] = (),
    progress: Progress | None = None,
    remark: Remark | None = None,
) -> TrainedModel:
    """Train, cross-validate and calibrate the judge of one topic.

    ``fetch_page(url)`` gives the parsed page or None when it cannot be had;
    then the directory's title and description stand in for it. ``labels`` that
    may teach are samples, too, and win over the directory. ``prior`` is
    the share of on-topic pages among those a crawl will judge, in (0, 1); None takes
    the samples' own share, held within 0.02 to 0.5. ``now`` is in seconds
    since the epoch. ``progress(done, total)`` is called after each sample,
    ``remark`` with each thing in the directory that could not be used, before the first.
    The same samples and seed give the same model.

    Raises :class:`ConfigurationError` for an unreadable directory,
    :class:`TrainingError` for samples that cannot teach the topic.
    """
    good_prefixes = topic.training.good
    directory = training_samples(topic.training)
    if remark is not None:
        for line in directory.remarks:
            remark(line)
    labels = tuple(labels)
    listed, told = with_labels(directory, labels, good_prefixes, _label_weight(topic, labels))
    if topic.training.keywords and not any(listed.good):
        listed = _with_keywords(listed, topic)
    if topic.training.background:
        listed = with_background(listed)
    _check_sides(listed.good, topic, "the directory lists")
    training = topic.training
    wish = Wish(training.precision, training.recall)
    plan = Plan(training.estimator, wish, prior, seed, training.keywords)
    with Corpus() as corpus:
        samples = gather(listed, fetch_page, corpus, progress, _confirmed(topic, labels))
        _check_sides(samples.good.tolist(), topic, _as_read(samples))
        fitted = fit(samples, corpus, plan)
    counts = _counts(topic, listed, samples, told)
    report = TrainingReport(
        topic=topic.name,
        estimator=topic.training.estimator,
        trained_at=now,
        seed=seed,
        digest=samples_digest(topic.training),
        samples=counts,
        trial=fitted.trial,
        top_words=fitted.top_words,
        warnings=doubts(counts, fitted.trial, samples, has_keywords=bool(training.keywords)),
    )
    return TrainedModel(fitted.classifier, report)


def _with_keywords(listed: SampleSet, topic: Topic) -> SampleSet:
    """The samples with the keywords as the only good one: all that is known of the topic."""
    text = " ".join(topic.training.keywords)
    entry = DirectoryEntry(topic.training.good[0], own_address(text.encode()), text=text)
    return replace(listed, entries=(entry, *listed.entries), good=(True, *listed.good))


def _label_weight(topic: Topic, labels: Sequence[Label]) -> float | None:
    """How much a label counts beside a listed page that keywords may have proposed.

    The more labels there are, the less the proposals count: a good part of them is wrong.
    """
    if not topic.training.keywords:
        return None
    return 1.0 + len(teaching(labels)) / _LABELS_A_PAGE


def _confirmed(topic: Topic, labels: Iterable[Label]) -> frozenset[str]:
    """The URLs of pages that a person vouched for: labels and seeds."""
    urls = (*topic.seeds.urls, *(label.url for label in teaching(labels)))
    return frozenset(normalise(url) or url for url in urls)


def _check_sides(good: Sequence[bool], topic: Topic, verb: str) -> None:
    ours, others = sum(good), len(good) - sum(good)
    names = ", ".join(topic.training.good)
    files = ", ".join(str(path) for path in topic.training.directory)
    if not ours:
        raise TrainingError(
            f"training.good ({names}): 0 good samples {verb}, at least one is needed; "
            f"add a page of the topic to {files}, or label one with yes: focused label "
            f"{topic.output.folder}"
        )
    if others < MIN_OTHERS:
        raise TrainingError(
            f"training.directory: {others} sample(s) outside {names} {verb}, at least "
            f"{MIN_OTHERS} are needed; add pages that are not on topic to {files}, "
            "in a category such as Top/Other, or leave training.background at true"
        )


def _as_read(samples: Samples) -> str:
    repeated = samples.copies + samples.contradictions
    if not repeated:
        return "could be read"
    return f"could be read and repeat no other ({repeated} do so word for word)"


def fit(samples: Samples, corpus: Corpus, plan: Plan) -> Fitted:
    """Fit a judge to samples and try it out; there must be a good one and :data:`MIN_OTHERS`.

    Raises :class:`TrainingError` for samples that cannot be told apart, where no keywords
    tell them apart either.
    """
    keywords = KeywordWeights(plan.keywords) if plan.keywords else None
    vocabulary = corpus.vocabulary(keywords.words_among(corpus.words()) if keywords else ())
    if not len(vocabulary):
        raise TrainingError(
            "training.directory: no word occurs in two samples; "
            "the pages are too few or too short to learn from"
        )
    material, known_share = _material(samples, corpus, vocabulary, plan.seed)
    sums, sizes = material.sums(np.zeros(len(samples), dtype=np.intp))
    if keywords is None:
        _check_trial(samples)
        calibration, seen, trial = calibrate(material, known_share, plan)
        ratio = good_ratio(sums[0], material.category_good, seen.kind)
        weights, bias = fit_weights(
            plan.estimator, material.rows, material.drawn_good, material.drawn_weights, ratio
        )
    else:
        confirmed = samples.confirmed[material.drawn]
        found = fit_with_keywords(material, known_share, plan, keywords.of(vocabulary), confirmed)
        calibration, seen, trial = found.calibration, found.seen, found.trial
        weights, bias = found.weights, found.bias
    taxonomy = taxonomy_of(material, sums[0], sizes[0], seen.taxonomy)
    classifier = TopicClassifier(vocabulary, weights, bias, taxonomy, calibration)
    gains = weights * np.asarray(material.rows[material.drawn_good].mean(axis=0)).ravel()
    best = np.argsort(-gains, kind="stable")[:_TOP_WORDS].tolist()
    words = tuple((vocabulary.words[i], round(float(gains[i]), 4)) for i in best)
    return Fitted(classifier, trial, words)


def _check_trial(samples: Samples) -> None:
    if samples.good.sum() < 2:
        raise TrainingError(
            "training.good: the only good sample has too few words to learn from; add a longer "
            "page of the topic, or a second one, or give training.keywords"
        )


def _material(
    samples: Samples, corpus: Corpus, vocabulary: Vocabulary, seed: int
) -> tuple[Material, NDArray[np.float64]]:
    """The samples as fits want them; the known words' share of those that are no background."""
    drawn = _drawn(samples.good, seed)
    parts, shares, done = [], [], 0
    for batch in corpus.batches(vocabulary):
        count = batch.rows.shape[0]
        here = drawn[(drawn >= done) & (drawn < done + count)] - done
        parts.append(batch.rows[here])
        shares.append(batch.known_share)
        done += count
    rows = sp.vstack(parts, format="csr")

    def batches() -> Iterator[sp.csr_matrix]:
        if len(drawn) == len(samples):
            yield rows
        else:
            yield from (batch.rows for batch in corpus.batches(vocabulary))

    classes = merged_categories(samples.categories, samples.good.tolist())
    categories = sorted({*classes})
    place = {name: i for i, name in enumerate(categories)}
    category = np.array([place[name] for name in classes], dtype=np.intp)
    category_good = np.zeros(len(categories), dtype=bool)
    category_good[category] = samples.good
    material = Material(
        batches=batches,
        rows=rows,
        drawn=drawn,
        category=category,
        categories=tuple(categories),
        category_good=category_good,
        weights=samples.weights,
        hosts=samples.hosts,
        titles=samples.titles,
        vocabulary=vocabulary,
    )
    own = np.array([not is_background(name) for name in samples.categories])
    return material, np.concatenate(shares)[own]


def _drawn(good: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Places of at most :data:`MAX_DRAWN` samples, ascending: half of each side where it can be."""
    rng = np.random.default_rng(seed)
    sides = [np.flatnonzero(good), np.flatnonzero(~good)]
    least = min(len(side) for side in sides)
    room = [min(len(side), max(MAX_DRAWN // 2, MAX_DRAWN - least)) for side in sides]
    chosen = [
        side if len(side) <= most else rng.choice(side, most, replace=False)
        for side, most in zip(sides, room, strict=True)
    ]
    return np.asarray(np.sort(np.concatenate(chosen)))


def _counts(topic: Topic, listed: SampleSet, samples: Samples, told: LabelCounts) -> SampleCounts:
    good, hosts = samples.good, np.array(samples.hosts)
    general = np.array([is_background(name) for name in samples.categories])
    return SampleCounts(
        sources=tuple(path.name for path in topic.training.directory),
        good_prefixes=tuple(topic.training.good),
        categories=tuple(sorted(Counter(samples.categories).items())),
        good=int(good.sum()) - samples.halved,
        other=int((~good).sum()),
        good_hosts=len(set(hosts[good])),
        hosts=len(set(hosts[~general])),
        fetched=samples.fetched,
        text_only=len(good)
        - samples.halved
        + samples.copies
        + samples.contradictions
        - samples.fetched,
        without_text=samples.without_text,
        conflicts=listed.conflicts,
        repeats=listed.repeats,
        copies=samples.copies,
        contradictions=samples.contradictions,
        labelled_yes=told.yes,
        labelled_no=told.no,
        overruled=told.overruled,
        background=int(general.sum()),
        background_weight=float(samples.weights[general].mean()) if general.any() else 0.0,
    )
