"""Training: from a topic's directory to a calibrated model with its report."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from focused.directory.digest import content_digest
from focused.directory.entry import DirectoryEntry
from focused.directory.own_pages import own_page
from focused.directory.samples import training_samples
from focused.directory.sides import SampleSet
from focused.errors import TrainingError
from focused.learning.calibration import (
    Bools,
    best_threshold,
    cross_fitted,
    expit,
    logit,
    measure,
    platt,
    ranking_quality,
    reliability,
)
from focused.learning.documents import learn_vocabulary, matrix, page_words
from focused.learning.estimators import fit_weights
from focused.learning.fitting import (
    LabelledRows,
    OutOfFold,
    cross_validate,
    fit_taxonomy,
    host_folds,
    merged_categories,
    page_folds,
)
from focused.learning.report import SampleCounts, TrainedModel, TrainingReport, Trial
from focused.learning.topic_classifier import Calibration, TopicClassifier
from focused.topic import MAX_SAMPLES, Topic
from focused.web.page import Page
from focused.web.url import host_of

MIN_HOST_AUC = 0.75
"""Below this on left-out hosts, the model is calibrated on left-out pages."""

MIN_SAMPLES = 5
"""Fewer samples than this on either side cannot be cross-validated."""

_PRIOR_RANGE = (0.02, 0.5)
_TOP_WORDS = 30

FetchPage = Callable[[str], Page | None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples with words. ``documents[i]`` are the two word lists of page i."""

    entries: tuple[DirectoryEntry, ...]
    good: Bools
    documents: tuple[tuple[list[str], list[str]], ...]
    titles: tuple[str, ...]
    fetched: int
    without_text: int

    @property
    def hosts(self) -> list[str]:
        return [host_of(entry.url) for entry in self.entries]


def train_topic(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    seed: int = 0,
    prior: float | None = None,
    progress: Progress | None = None,
) -> TrainedModel:
    """Train, cross-validate and calibrate the judge of one topic.

    ``fetch_page(url)`` gives the parsed page or None when it cannot be had;
    then the directory's title and description stand in for it. ``prior`` is
    the share of on-topic pages among those a crawl will judge, in (0, 1); None takes
    the samples' own share, held within 0.02 to 0.5. ``now`` is in seconds
    since the epoch. ``progress(done, total)`` is called after each sample.
    The same samples and seed give the same model.

    Raises :class:`ConfigurationError` for an unreadable directory,
    :class:`TrainingError` for samples that cannot teach the topic.
    """
    listed = training_samples(topic.training)
    _check_sides(listed.good, topic, "the directory lists")
    samples = _gather(listed, fetch_page, progress)
    _check_sides(samples.good.tolist(), topic, "could be read")
    return _fit(topic, listed, samples, now=now, seed=seed, prior=prior)


def _check_sides(good: Sequence[bool], topic: Topic, verb: str) -> None:
    ours, others = sum(good), len(good) - sum(good)
    names = ", ".join(topic.training.good)
    files = ", ".join(str(path) for path in topic.training.directory)
    if ours < MIN_SAMPLES:
        raise TrainingError(
            f"training.good ({names}): {ours} good sample(s) {verb}, at least {MIN_SAMPLES} "
            f"are needed; add pages of the topic to {files}"
        )
    if others < MIN_SAMPLES:
        raise TrainingError(
            f"training.directory: {others} sample(s) outside {names} {verb}, at least "
            f"{MIN_SAMPLES} are needed; add pages that are not on topic to {files}, "
            "in a category such as Top/Other"
        )


def _gather(listed: SampleSet, fetch_page: FetchPage, progress: Progress | None) -> _Samples:
    """Every sample's words: the page's, else the directory's own, else none (dropped)."""
    kept: list[tuple[DirectoryEntry, bool, tuple[list[str], list[str]], str]] = []
    fetched = without_text = 0
    for done, (entry, good) in enumerate(zip(listed.entries, listed.good, strict=True), start=1):
        page = fetch_page(entry.url) if entry.is_fetched else own_page(entry)
        document = page_words(page) if page else ([], [])
        if any(document):
            fetched += 1
        else:
            page = Page(entry.url, title=entry.title, description=entry.description)
            document = page_words(page)
        if page is not None and any(document):
            kept.append((entry, good, document, page.title or entry.title))
        else:
            without_text += 1
        if progress:
            progress(done, len(listed.entries))
    entries, sides, documents, titles = zip(*kept, strict=True) if kept else ((), (), (), ())
    good_sides = np.array(sides, dtype=bool)
    return _Samples(entries, good_sides, documents, titles, fetched, without_text)


def _fit(
    topic: Topic,
    listed: SampleSet,
    samples: _Samples,
    *,
    now: float,
    seed: int,
    prior: float | None,
) -> TrainedModel:
    vocabulary = learn_vocabulary(samples.documents, samples.hosts)
    if not len(vocabulary):
        raise TrainingError(
            "training.directory: no word occurs in two samples; "
            "the pages are too few or too short to learn from"
        )
    good = samples.good
    rows = matrix((vocabulary.vector(*pair) for pair in samples.documents), len(vocabulary))
    classes = merged_categories([entry.category for entry in samples.entries], good.tolist())
    labelled = LabelledRows(rows, good, classes, samples.hosts, samples.titles, vocabulary)
    calibration, trial = _calibrate(labelled, topic, seed, prior)
    weights, bias = fit_weights(topic.training.estimator, rows, good)
    classifier = TopicClassifier(
        vocabulary, weights, bias, fit_taxonomy(rows, classes, good), calibration
    )
    gains = weights * np.asarray(rows[good].mean(axis=0)).ravel()
    best = np.argsort(-gains, kind="stable")[:_TOP_WORDS].tolist()
    report = TrainingReport(
        topic=topic.name,
        estimator=topic.training.estimator,
        trained_at=now,
        seed=seed,
        digest=samples_digest(topic),
        samples=_counts(topic, listed, samples),
        trial=trial,
        top_words=tuple((vocabulary.words[i], round(float(gains[i]), 4)) for i in best),
    )
    return TrainedModel(classifier, report)


def _try_out(samples: LabelledRows, estimator: str, seed: int) -> tuple[OutOfFold, float | None]:
    """The trial to calibrate on, and the AUC on left-out hosts where that was tried.

    Left-out hosts are the honest trial. But a topic that lives on few hosts,
    each with a vocabulary of its own, leaves too little to learn from when one
    is taken away; a calibration on that would call every page doubtful.
    """
    folds, auc = host_folds(samples.good, samples.hosts, seed), None
    if folds is not None:
        seen = cross_validate(samples, folds, estimator)
        auc = ranking_quality(seen.evidence, samples.good)
        if auc >= MIN_HOST_AUC:
            return seen, auc
    return cross_validate(samples, page_folds(samples.good, seed), estimator), auc


def _calibrate(
    samples: LabelledRows, topic: Topic, seed: int, prior: float | None
) -> tuple[Calibration, Trial]:
    good = samples.good
    seen, host_auc = _try_out(samples, topic.training.estimator, seed)
    slope, offset = platt(seen.evidence, good)
    if slope <= 0:
        raise TrainingError(
            f"training.good ({', '.join(topic.training.good)}): cross-validation finds no "
            "difference between the good samples and the rest; give more samples of more "
            "hosts, or check that the categories are right"
        )
    relevance = cross_fitted(seen.evidence, good, seen.fold)
    threshold = best_threshold(relevance, good)
    before = expit(seen.evidence)
    trial = Trial(
        by_host=host_auc is not None and host_auc >= MIN_HOST_AUC,
        host_auc=host_auc,
        folds=len(np.unique(seen.fold)),
        naive_bayes=measure(seen.naive_bayes, good, 0.5),
        uncalibrated=measure(before, good, 0.5),
        calibrated=measure(relevance, good, threshold),
        bins_before=tuple(reliability(before, good)),
        bins_after=tuple(reliability(relevance, good)),
    )
    share = float(good.mean())
    chosen = float(np.clip(share, *_PRIOR_RANGE)) if prior is None else prior
    shift = logit(chosen) - logit(share)
    calibration = Calibration(
        slope=slope,
        offset=offset + shift,
        verdict_slope=max(platt(seen.title_evidence, good)[0], 0.0),
        prior=chosen,
        threshold=float(expit(np.array(logit(threshold) + shift))),
    )
    return calibration, trial


def _counts(topic: Topic, listed: SampleSet, samples: _Samples) -> SampleCounts:
    good, hosts = samples.good, np.array(samples.hosts)
    categories = Counter(entry.category for entry in samples.entries)
    return SampleCounts(
        sources=tuple(path.name for path in topic.training.directory),
        good_prefixes=tuple(topic.training.good),
        categories=tuple(sorted(categories.items())),
        good=int(good.sum()),
        other=int((~good).sum()),
        good_hosts=len(set(hosts[good])),
        hosts=len(set(hosts)),
        fetched=samples.fetched,
        text_only=len(good) - samples.fetched,
        without_text=samples.without_text,
        conflicts=listed.conflicts,
        repeats=listed.repeats,
    )


def samples_digest(topic: Topic) -> str:
    """A digest of what the model is made from: directory, good list and how
    many samples are drawn, where that is not the usual number."""
    digest = hashlib.sha256()
    for prefix in topic.training.good:
        digest.update(b"good\0" + prefix.encode() + b"\0")
    if topic.training.max_samples != MAX_SAMPLES:
        digest.update(b"max_samples\0%d\0" % topic.training.max_samples)
    for path in topic.training.directory:
        digest.update(b"file\0" + content_digest(path))
    return digest.hexdigest()
