"""The training report of a model, and its rendering as a model card in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from focused.classifier.calibration_fitting import ClassifierMetrics, ReliabilityBin
from focused.classifier.sample_texts import text_identity
from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.text.documents import page_words
from focused.topic import ESTIMATORS
from focused.web.page import Page


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Numbers of samples unless named otherwise.

    ``fetched`` samples had a page; for ``text_only`` the directory's title and description were
    used. Left out: ``without_text``, ``copies`` of a sample of the same class, and
    ``contradictions``, others with the words of a good sample. ``conflicts`` are URLs listed as
    good and as other (counted as good), ``repeats`` further lines of a URL. ``overruled`` labels
    contradicted the directory. ``background`` others are of the general background, each with
    weight ``background_weight``. ``sources`` are file names, ``categories`` pairs of name and
    number.
    """

    sources: tuple[str, ...]
    good_prefixes: tuple[str, ...]
    categories: tuple[tuple[str, int], ...]
    good: int
    other: int
    good_hosts: int
    hosts: int
    fetched: int
    text_only: int
    without_text: int
    conflicts: int
    repeats: int
    copies: int
    contradictions: int
    labelled_yes: int
    labelled_no: int
    overruled: int
    background: int
    background_weight: float


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Cross-validation results; every metric is out-of-fold.

    ``by_host`` tells whether whole hosts were left out, ``host_auc`` the AUC when they were
    (None if not possible; a low AUC makes validation fall back to pages). ``naive_bayes`` is
    plain soft-focus naive Bayes, for comparison; ``uncalibrated`` the raw scores as log-odds
    (both at 0.5); ``calibrated`` the relevance at the threshold. ``kind`` is the naive Bayes
    variant of the word weights, ``taxonomy`` the variant and shape that names categories,
    ``named`` the accuracy of all. ``wish`` is the target of the threshold, ``granted`` whether
    it is reached.
    """

    by_host: bool
    host_auc: float | None
    folds: int
    naive_bayes: ClassifierMetrics
    uncalibrated: ClassifierMetrics
    calibrated: ClassifierMetrics
    bins_before: tuple[ReliabilityBin, ...]
    bins_after: tuple[ReliabilityBin, ...]
    kind: str
    taxonomy: tuple[str, str]
    named: tuple[tuple[str, str, float], ...]
    wish: str
    granted: bool
    parts: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The content of the model card. ``trained_at`` is in seconds since the epoch.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``digest`` identifies directory and
    good categories. ``top_words`` are pairs of a word and its mean contribution to the score of
    a good sample, largest first.
    """

    topic: str
    estimator: str
    trained_at: float
    seed: int
    digest: str
    samples: SampleCounts
    trial: ValidationReport
    top_words: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedModel:
    """The content of a model file, classifier and training report, and what it learned from.

    A model from a file has none of the latter: ``training_urls`` are the final URLs of the pages it
    was trained on, ``texts`` identify these pages by content, and ``listed_urls`` are the
    normalised URLs of the directory's samples.
    """

    classifier: LinearTopicClassifier
    report: TrainingReport
    training_urls: frozenset[str] = frozenset()
    texts: frozenset[bytes] = frozenset()
    listed_urls: frozenset[str] = frozenset()

    def was_trained_on(self, page: Page) -> bool:
        """Whether the model was trained on this page, by URL or by identical text."""
        return page.url in self.training_urls or text_identity(page_words(page)) in self.texts


def render_model_card(model: TrainedModel, versions: Sequence[tuple[str, str]]) -> str:
    """Return the model card in Markdown. ``versions`` are pairs of program and version."""
    report, calibration = model.report, model.classifier.calibration
    made = datetime.fromtimestamp(report.trained_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"# Topic model: {report.topic}",
        f"Classifies whether a page is about **{report.topic}** "
        f"({', '.join(report.samples.good_prefixes)}). Word weights by {report.estimator}; "
        f"trained {made}, seed {report.seed}.",
        f"A page counts as on topic from a relevance of **{model.classifier.threshold:.2f}**, "
        f"chosen for {report.trial.wish}. A page with hardly a known word, or with less than "
        f"{calibration.min_known_share:.0%} of its words known (another language), is not "
        f"classified: it gets the prior, {calibration.prior:.3f}.",
        *_warnings_section(report.warnings),
        "## Samples",
        _samples_section(report.samples),
        "## Quality",
        _quality_section(report.trial, report.estimator),
        "## Calibration",
        _reliability_section(report.trial),
        "## Most important words",
        ", ".join(f"{word} ({gain:.3f})" for word, gain in report.top_words),
        "Each with its mean contribution to the raw score of a good sample.",
        "## Made with",
        markdown_table(
            ("part", "value"), [*versions, *_model_rows(model), ("samples digest", report.digest)]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _warnings_section(warnings: Sequence[str]) -> list[str]:
    return ["## Warnings", "\n".join(f"- {warning}." for warning in warnings)] if warnings else []


def _samples_section(counts: SampleCounts) -> str:
    lines = [
        f"{counts.good} good samples of {counts.good_hosts} hosts and {counts.other} others; "
        f"{counts.hosts} hosts in all. From {', '.join(counts.sources)}.",
        f"{counts.fetched} pages were parsed; for {counts.text_only} the directory's title and "
        f"description stood in; {counts.without_text} had neither and were left out. "
        f"{counts.conflicts} URLs were listed both as good and as other (they count as good), "
        f"{counts.repeats} lines repeated a URL. {counts.copies} pages repeated another of their "
        f"side word for word and were left out, and so were {counts.contradictions} others that "
        "repeat a good sample.",
        *_sample_notes(counts),
        markdown_table(("category", "samples"), [(name, str(n)) for name, n in counts.categories]),
    ]
    return "\n\n".join(lines)


def _sample_notes(counts: SampleCounts) -> list[str]:
    notes = []
    if counts.labelled_yes or counts.labelled_no:
        notes.append(
            f"Labels: {counts.labelled_yes} yes, {counts.labelled_no} no; {counts.overruled} of "
            "them overruled the directory."
        )
    if counts.background:
        notes.append(
            f"Of the others {counts.background} are the general background, each worth "
            f"{counts.background_weight:.2f} samples."
        )
    return notes


def _quality_section(trial: ValidationReport, estimator: str) -> str:
    is_bayes = estimator == ESTIMATORS[0]
    weighed = f"{trial.kind}, words weighed again" if is_bayes else estimator
    weighed += ", combined with the parts below" if trial.parts else ""
    how = f"{trial.folds}-fold cross-validation {_validation_sentence(trial)}"
    rows = [
        ("naive Bayes alone", *_format_metrics(trial.naive_bayes)),
        (weighed, *_format_metrics(trial.uncalibrated)),
        ("calibrated, at the threshold", *_format_metrics(trial.calibrated)),
    ]
    names = ("model", "precision", "recall", "F1", "AUC", "average precision", "ECE")
    sections = [
        how,
        markdown_table(names, rows),
        *_parts_section(trial),
        _taxonomy_sentence(trial),
    ]
    return "\n\n".join(sections)


def _parts_section(trial: ValidationReport) -> list[str]:
    """Say how much each part of the score counts, and how well it ranks alone."""
    if not trial.parts:
        return []
    rows = [(name, f"{share:.0%}", f"{ap:.3f}") for name, share, ap in trial.parts]
    rows.append(("all", "100%", f"{trial.uncalibrated.average_precision:.3f}"))
    return [
        "The score combines these parts, with weights fitted on left-out samples:",
        markdown_table(("part", "share of the score", "average precision"), rows),
    ]


def _taxonomy_sentence(trial: ValidationReport) -> str:
    """Say which naive Bayes variant names categories, and its accuracy."""
    shares = ", ".join(f"{kind} {shape} {share:.0%}" for kind, shape, share in trial.named if share)
    return (
        f"Categories are named by {' '.join(trial.taxonomy)} naive Bayes. Of left-out samples "
        f"these named the right category: {shares}."
    )


def _validation_sentence(trial: ValidationReport) -> str:
    if trial.by_host:
        return "that leaves out whole hosts: the figures are of hosts the model had not seen."
    if trial.host_auc is None:
        return (
            "by page: the samples come from too few hosts to leave whole hosts out, "
            "so these figures are optimistic."
        )
    return (
        f"by page. Leaving out whole hosts gave an AUC of only {trial.host_auc:.3f}: the topic's "
        "words differ from host to host. Expect less than these figures on new hosts, "
        "and add samples of more hosts."
    )


def _format_metrics(quality: ClassifierMetrics) -> tuple[str, ...]:
    return tuple(
        f"{value:.3f}"
        for value in (
            quality.precision,
            quality.recall,
            quality.f1,
            quality.auc,
            quality.average_precision,
            quality.ece,
        )
    )


def _reliability_section(trial: ValidationReport) -> str:
    names = ("samples", "mean relevance", "truly good")
    before, after = (
        markdown_table(names, [_format_bin(bin_) for bin_ in bins])
        for bins in (trial.bins_before, trial.bins_after)
    )
    return (
        f"Before (expected calibration error {trial.uncalibrated.ece:.3f}):\n\n{before}\n\n"
        f"After, by a curve fitted on the other folds (expected calibration error "
        f"{trial.calibrated.ece:.3f}):\n\n{after}\n\n"
        "The pages of a crawl are nearer to the topic than samples, so the crawl stores and shows "
        "tempered relevances, with the threshold above."
    )


def _format_bin(bin_: ReliabilityBin) -> tuple[str, ...]:
    return f"{bin_.count:.6g}", f"{bin_.predicted:.3f}", f"{bin_.observed:.3f}"


def _model_rows(model: TrainedModel) -> list[tuple[str, str]]:
    classifier = model.classifier
    return [
        ("words", str(len(classifier.vocabulary))),
        ("categories after merging", str(len(classifier.taxonomy.categories))),
        (
            "relevance",
            f"slope {classifier.calibration.curve.slope:.3f}, offset "
            f"{classifier.calibration.curve.offset + classifier.calibration.shift:.3f}, "
            f"{len(classifier.calibration.curve.points)} isotonic steps",
        ),
        ("nats per unit of short texts", f"{classifier.calibration.verdict_slope:.3f}"),
    ]


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
