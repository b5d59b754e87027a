"""Trains a topic's classifier: from directory and labels to a calibrated model with its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import BoolArray, ThresholdTarget
from focused.classifier.estimators import TrainingOptions, fit_semantic_scorer
from focused.classifier.keyword_classifier import KeywordWeights
from focused.classifier.page_model import (
    MIN_LABELS_FOR_THRESHOLD,
    fit_keyword_model,
    fit_page_model,
)
from focused.classifier.sample_texts import (
    FetchPage,
    LabelCounts,
    MessageCallback,
    SampleWords,
    TrainingSamples,
    add_background,
    add_labels,
    gather_samples,
    text_identity,
)
from focused.classifier.semantic_scorer import SemanticScorer, embed_first_words
from focused.classifier.taxonomy import merge_small_categories
from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.classifier.training_report import (
    SampleCounts,
    TrainedModel,
    TrainingReport,
    ValidationReport,
)
from focused.classifier.validation import (
    TrainingData,
    calibrate_estimator,
    fit_training_taxonomy,
)
from focused.directory import DirectoryEntry, content_url, samples_digest
from focused.directory.directory_reader import load_training_samples
from focused.directory.sample_set import SampleSet, is_background
from focused.errors import TrainingError
from focused.labels.label_file import Label, spam_labels, training_labels
from focused.spam.spam_classifier import SpamClassifier
from focused.spam.spam_training import MAX_SAMPLES as MAX_SPAM_LABELS
from focused.spam.spam_training import fit_spam_classifier
from focused.text.documents import Vocabulary, page_words
from focused.text.static_embedding import load_embedding
from focused.topic import Topic
from focused.web.host_names import registered_domain
from focused.web.page import Page
from focused.web.urls import host_of, normalize_url

MIN_OTHER_SAMPLES = 5
"""With fewer other samples nothing defines what the topic is not."""

_LABELS_PER_WEIGHT = 10
"""Number of labels that adds 1 to the weight of each label: see _label_weight."""

MAX_REGRESSION_SAMPLES = 20_000
"""Maximum number of samples for regression and validation; naive Bayes uses all."""

_TOP_WORDS = 30


@dataclass(frozen=True, slots=True)
class FittedClassifier:
    """A classifier, its validation, and its most important words with their gains."""

    classifier: LinearTopicClassifier
    trial: ValidationReport
    top_words: tuple[tuple[str, float], ...]


def train_topic(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    seed: int = 0,
    prior: float | None = None,
    labels: Iterable[Label] = (),
    on_message: MessageCallback | None = None,
) -> TrainedModel:
    """Train, validate and calibrate the classifiers of one topic and its spam.

    ``fetch_page(url)`` returns the parsed page, or None if unavailable; then the directory's
    title and description are used. Training labels are samples, too, and override the directory.
    ``prior`` is the expected share of on-topic pages during the crawl, in (0, 1); None uses the
    samples' share, clipped to 0.02 to 0.5. ``now`` is in seconds since the epoch.
    ``on_message`` is called with each record of the directory that could not be used. The same
    samples and seed give the same model.

    Raises :class:`ConfigurationError` for an unreadable directory, :class:`TrainingError` for
    unsuitable samples.
    """
    good_prefixes = topic.training.good
    directory = load_training_samples(topic.training)
    if on_message is not None:
        for line in directory.messages:
            on_message(line)
    labels = tuple(labels)
    listed, label_counts = add_labels(
        directory, labels, good_prefixes, _label_weight(topic, labels)
    )
    if topic.training.keywords and not any(listed.good):
        listed = _add_keyword_sample(listed, topic)
    if topic.training.background:
        listed = add_background(listed)
    _check_sample_counts(listed.good, topic, "the directory lists")
    training = topic.training
    target = ThresholdTarget(training.precision, training.recall)
    options = TrainingOptions(
        training.estimator, target, prior, seed, training.keywords, training.embedding
    )
    training_urls: set[str] = set()
    texts: set[bytes] = set()

    def fetch_and_note(url: str) -> Page | None:
        page = fetch_page(url)
        if page is not None:
            training_urls.add(page.url)
            texts.add(text_identity(page_words(page)))
        return page

    sample_words = SampleWords()
    samples = gather_samples(listed, fetch_and_note, sample_words, _confirmed_urls(topic, labels))
    _check_sample_counts(samples.good.tolist(), topic, _read_description(samples))
    fitted = fit_classifier(samples, sample_words, options)
    spam = _fit_spam_classifier(listed, samples.pages, labels, fetch_and_note, seed)
    counts = _count_samples(topic, listed, samples, label_counts)
    report = TrainingReport(
        topic=topic.name,
        estimator=topic.training.estimator,
        trained_at=now,
        seed=seed,
        digest=samples_digest(topic.training),
        samples=counts,
        trial=fitted.trial,
        top_words=fitted.top_words,
        warnings=tuple(
            training_warnings(counts, fitted.trial, samples, has_keywords=bool(training.keywords))
        ),
    )
    make_spam = None if spam is None else partial(copy, spam)
    return TrainedModel(
        replace(fitted.classifier, make_spam=make_spam),
        report,
        frozenset(training_urls),
        frozenset(texts),
        frozenset(filter(None, (normalize_url(each.url) for each in directory.entries))),
    )


def _fit_spam_classifier(
    listed: SampleSet,
    pages: Sequence[Page],
    labels: Iterable[Label],
    fetch_page: FetchPage,
    seed: int,
) -> SpamClassifier | None:
    """Fit the spam classifier on samples, and on the latest pages that were labelled spam.

    A site with a good sample is not a spam site: one of its users may have made the page.
    """
    labelled = [label.url for label in spam_labels(labels)]
    latest = [page for url in labelled[-MAX_SPAM_LABELS:] if (page := fetch_page(url)) is not None]
    good_sites = {
        registered_domain(host_of(entry.url))
        for entry, good in zip(listed.entries, listed.good, strict=True)
        if good
    }
    sites = {registered_domain(host_of(url)) for url in labelled} - good_sites
    return fit_spam_classifier(pages, seed, latest, sites)


def _add_keyword_sample(listed: SampleSet, topic: Topic) -> SampleSet:
    """Add the keywords as the only good sample."""
    text = " ".join(topic.training.keywords)
    entry = DirectoryEntry(topic.training.good[0], content_url(text.encode()), text=text)
    return replace(listed, entries=(entry, *listed.entries), good=(True, *listed.good))


def _label_weight(topic: Topic, labels: Sequence[Label]) -> float | None:
    """Return the weight of a label relative to a listed page that keywords may have proposed.

    It grows with the number of labels: many proposals are wrong.
    """
    if not topic.training.keywords:
        return None
    return 1.0 + len(training_labels(labels)) / _LABELS_PER_WEIGHT


def _confirmed_urls(topic: Topic, labels: Iterable[Label]) -> frozenset[str]:
    """Return the URLs of pages that a person confirmed: labels and seeds."""
    urls = (*topic.seeds.urls, *(label.url for label in training_labels(labels)))
    return frozenset(normalize_url(url) or url for url in urls)


def _check_sample_counts(good: Sequence[bool], topic: Topic, verb: str) -> None:
    ours, others = sum(good), len(good) - sum(good)
    names = ", ".join(topic.training.good)
    files = ", ".join(str(path) for path in topic.training.directory)
    if not ours:
        raise TrainingError(
            f"training.good ({names}): 0 good samples {verb}, at least one is needed; "
            f"add a page of the topic to {files}, or label one with yes: focused label "
            f"{topic.output.folder}"
        )
    if others < MIN_OTHER_SAMPLES:
        raise TrainingError(
            f"training.directory: {others} sample(s) outside {names} {verb}, at least "
            f"{MIN_OTHER_SAMPLES} are needed; add pages that are not on topic to {files}, "
            "in a category such as Top/Other, or leave training.background at true"
        )


def _read_description(samples: TrainingSamples) -> str:
    repeated = samples.copies + samples.contradictions
    if not repeated:
        return "could be read"
    return f"could be read and repeat no other ({repeated} do so word for word)"


def fit_classifier(
    samples: TrainingSamples, sample_words: SampleWords, options: TrainingOptions
) -> FittedClassifier:
    """Fit and validate a classifier; needs a good sample and :data:`MIN_OTHER_SAMPLES` others.

    Raises :class:`TrainingError` for samples that are not separated, unless there are keywords.
    """
    keywords = KeywordWeights(options.keywords) if options.keywords else None
    vocabulary = sample_words.vocabulary(
        keywords.words_among(sample_words.words()) if keywords else ()
    )
    if not len(vocabulary):
        raise TrainingError(
            "training.directory: no word occurs in two samples; "
            "the pages are too few or too short to learn from"
        )
    data, known_share = _make_training_data(samples, sample_words, vocabulary, options)
    sums, sizes = data.sums(np.zeros(len(samples), dtype=np.intp))
    if keywords is None:
        _check_good_samples(samples)
        calibration, predictions, trial = calibrate_estimator(data, known_share, options)
        model = fit_page_model(data, options.estimator, predictions)
    else:
        confirmed = samples.confirmed[data.drawn]
        embedding = load_embedding() if options.embedding else None
        direction = np.zeros(0) if embedding is None else keywords.direction(embedding)
        calibration, predictions, trial, model = fit_keyword_model(
            data, known_share, options, keywords.of(vocabulary), direction, confirmed
        )
    taxonomy = fit_training_taxonomy(data, sums[0], sizes[0], predictions.taxonomy)
    semantic = _fit_semantic_scorer(data, predictions.fold) if options.embedding else None
    weights = model.weights.astype(np.float32)
    classifier = LinearTopicClassifier(
        vocabulary,
        weights,
        model.bias,
        taxonomy,
        calibration,
        semantic,
        model.lead_scorer(),
    )
    gains = weights * np.asarray(data.rows[data.drawn_good].mean(axis=0)).ravel()
    best = np.argsort(-gains, kind="stable")[:_TOP_WORDS].tolist()
    words = tuple((vocabulary.words[i], round(float(gains[i]), 4)) for i in best)
    return FittedClassifier(classifier, trial, words)


def _fit_semantic_scorer(data: TrainingData, fold: NDArray[np.intp]) -> SemanticScorer | None:
    embedding = load_embedding()
    if embedding is None:
        return None
    leads, titles = ([texts[i] for i in data.drawn] for texts in (data.leads, data.titles))
    return fit_semantic_scorer(embedding, leads, titles, data.drawn_good, data.drawn_weights, fold)


def _check_good_samples(samples: TrainingSamples) -> None:
    if samples.good.sum() < 2:
        raise TrainingError(
            "training.good: the only good sample has too few words to learn from; add a longer "
            "page of the topic, or a second one, or give training.keywords"
        )


def _make_training_data(
    samples: TrainingSamples,
    sample_words: SampleWords,
    vocabulary: Vocabulary,
    options: TrainingOptions,
) -> tuple[TrainingData, NDArray[np.float64]]:
    """Return the training data, and the known words' share of samples outside the background."""
    drawn = _draw_samples(samples.good, options.seed)
    all_rows = sample_words.rows(vocabulary)
    classes = merge_small_categories(samples.categories, samples.good.tolist())
    categories = sorted({*classes})
    index = {name: i for i, name in enumerate(categories)}
    category = np.array([index[name] for name in classes], dtype=np.intp)
    category_good = np.zeros(len(categories), dtype=bool)
    category_good[category] = samples.good
    data = TrainingData(
        all_rows=all_rows,
        rows=all_rows if len(drawn) == len(samples) else all_rows[drawn],
        drawn=drawn,
        category=category,
        categories=tuple(categories),
        category_good=category_good,
        weights=samples.weights,
        hosts=samples.hosts,
        titles=samples.titles,
        leads=samples.leads,
        vocabulary=vocabulary,
        lead_vectors=_embed_leads(sample_words, drawn) if options.embedding else None,
    )
    own = np.array([not is_background(name) for name in samples.categories])
    return data, sample_words.known_shares(vocabulary)[own]


def _embed_leads(sample_words: SampleWords, drawn: NDArray[np.intp]) -> NDArray[np.float32] | None:
    embedding = load_embedding()
    if embedding is None:
        return None
    return embed_first_words(embedding, [sample_words.first_words[place] for place in drawn])


def _draw_samples(good: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Return up to :data:`MAX_REGRESSION_SAMPLES` indices, ascending, balanced if possible."""
    rng = np.random.default_rng(seed)
    classes_ = [np.flatnonzero(good), np.flatnonzero(~good)]
    least = min(len(of_class) for of_class in classes_)
    room = [
        min(len(of_class), max(MAX_REGRESSION_SAMPLES // 2, MAX_REGRESSION_SAMPLES - least))
        for of_class in classes_
    ]
    chosen = [
        of_class if len(of_class) <= most else rng.choice(of_class, most, replace=False)
        for of_class, most in zip(classes_, room, strict=True)
    ]
    return np.asarray(np.sort(np.concatenate(chosen)))


def _count_samples(
    topic: Topic, listed: SampleSet, samples: TrainingSamples, label_counts: LabelCounts
) -> SampleCounts:
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
        labelled_yes=label_counts.yes,
        labelled_no=label_counts.no,
        overruled=label_counts.overruled,
        background=int(general.sum()),
        background_weight=float(samples.weights[general].mean()) if general.any() else 0.0,
    )


RELIABLE_GOOD_SAMPLES = 30
"""With fewer good samples the metrics are rough estimates."""

_MIN_LANGUAGE_SHARE = 0.6
_MAX_OTHER_LANGUAGE_SHARE = 0.1
_MAX_CONFLICT_SHARE = 0.1


def training_warnings(
    counts: SampleCounts,
    trial: ValidationReport,
    samples: TrainingSamples,
    *,
    has_keywords: bool = False,
) -> Iterator[str]:
    """Yield warnings for the model card, the most severe first."""
    if not trial.granted:
        reached = trial.calibrated
        yield (
            f"training.precision: no threshold gives {trial.wish} on held-out samples; the highest "
            f"precision is {reached.precision:.2f} (recall {reached.recall:.2f}). Label pages, add "
            "samples of the neighbours that are mistaken for the topic, or lower the target"
        )
    yes, no = counts.labelled_yes, counts.labelled_no
    if has_keywords and min(yes, no) < MIN_LABELS_FOR_THRESHOLD:
        yield (
            f"{yes + no} labelled pages ({yes} on topic): the keywords dominate, and the metrics "
            "are optimistic because the keywords chose the validation pages. "
            f"From {MIN_LABELS_FOR_THRESHOLD} labels of either kind on the labels dominate"
        )
    if counts.background and counts.other <= counts.background:
        yield (
            "the only other samples are the general background: the model separates the topic "
            "from the Web at large, not from its neighbours; add pages near the topic but not on it"
        )
    if of_languages := _language_warning(samples.good, samples.languages):
        yield of_languages
    if samples.halved:
        yield (
            "a single good sample: validation trains on one half of it and tests on the other, so "
            "the metrics are meaningless, and pages on topic that differ from it may be missed; "
            "add more pages of the topic"
        )
    elif counts.good < RELIABLE_GOOD_SAMPLES:
        yield (
            f"{counts.good} good samples: the metrics are rough; they and the relevance become "
            f"reliable from about {RELIABLE_GOOD_SAMPLES} on"
        )
    if counts.contradictions + counts.conflicts >= _MAX_CONFLICT_SHARE * counts.good:
        yield (
            f"{counts.conflicts} URLs and {counts.contradictions} further pages with identical "
            "text are listed as good and as other; they count as good. Check the categories in "
            "training.good"
        )
    if counts.good_hosts <= 1 and not trial.by_host:
        yield (
            "all good samples are of one host: the model may learn its name and menus instead of "
            "the topic; add samples of other hosts"
        )


def _language_warning(good: BoolArray, languages: Sequence[str]) -> str:
    ours, others = (
        Counter(
            language
            for language, of_class in zip(languages, good, strict=True)
            if of_class == wanted
        )
        for wanted in (True, False)
    )
    for known in (ours, others):
        known.pop("", None)
    if not ours or not others:
        return ""
    main, count = ours.most_common(1)[0]
    if (
        count < _MIN_LANGUAGE_SHARE * ours.total()
        or others[main] >= _MAX_OTHER_LANGUAGE_SHARE * others.total()
    ):
        return ""
    theirs = others.most_common(1)[0][0]
    return (
        f"most good samples are in the language {main!r}, most others in {theirs!r}: the model may "
        f"learn the language instead of the topic; add other samples in {main!r}"
    )
