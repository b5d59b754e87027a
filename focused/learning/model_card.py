"""The model card: what a model is, what it was made from, how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from focused.learning.calibration import Bin, Quality
from focused.learning.report import SampleCounts, TrainedModel, Trial
from focused.topic import ESTIMATORS


def render_card(model: TrainedModel, versions: Sequence[tuple[str, str]]) -> str:
    """The card as Markdown. ``versions`` are pairs of a program and its version."""
    report, calibration = model.report, model.classifier.calibration
    made = datetime.fromtimestamp(report.trained_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"# Topic model: {report.topic}",
        f"Judges whether a page is about **{report.topic}** "
        f"({', '.join(report.samples.good_prefixes)}). Words weighed by {report.estimator}; "
        f"trained {made}, seed {report.seed}.",
        f"A page counts as on topic from a relevance of **{calibration.threshold:.2f}**, chosen "
        f"for {report.trial.wish}. A page with hardly a known word, or with less than "
        f"{calibration.min_known_share:.0%} of its words known (another language), is not judged: "
        f"it gets the prior, {calibration.prior:.3f}.",
        *_warnings(report.warnings),
        "## Samples",
        _samples(report.samples),
        "## Quality",
        _quality(report.trial, report.estimator),
        "## Calibration",
        _reliability(report.trial),
        "## Words that speak for the topic",
        ", ".join(f"{word} ({gain:.3f})" for word, gain in report.top_words),
        "Each with its mean share in the evidence of a good sample.",
        "## Made with",
        _table(("part", "value"), [*versions, *_parts(model), ("samples digest", report.digest)]),
    ]
    return "\n\n".join(parts) + "\n"


def _warnings(warnings: Sequence[str]) -> list[str]:
    return ["## Warnings", "\n".join(f"- {one}." for one in warnings)] if warnings else []


def _samples(counts: SampleCounts) -> str:
    lines = [
        f"{counts.good} good samples of {counts.good_hosts} hosts and {counts.other} others; "
        f"{counts.hosts} hosts in all. From {', '.join(counts.sources)}.",
        f"{counts.fetched} pages were read; for {counts.text_only} the directory's title and "
        f"description stood in; {counts.without_text} had neither and were left out. "
        f"{counts.conflicts} URLs were listed both as good and as other (they count as good), "
        f"{counts.repeats} lines repeated a URL. {counts.copies} pages repeated another of their "
        f"side word for word and were left out, and so were {counts.contradictions} others that "
        "repeat a good one.",
        *_said(counts),
        _table(("category", "samples"), [(name, str(n)) for name, n in counts.categories]),
    ]
    return "\n\n".join(lines)


def _said(counts: SampleCounts) -> list[str]:
    told = []
    if counts.labelled_yes or counts.labelled_no:
        told.append(
            f"Labels: {counts.labelled_yes} yes, {counts.labelled_no} no; {counts.overruled} of "
            "them overruled the directory."
        )
    if counts.background:
        told.append(
            f"Of the others {counts.background} are the general background, each worth "
            f"{counts.background_weight:.2f} samples."
        )
    return told


def _quality(trial: Trial, estimator: str) -> str:
    is_bayes = estimator == ESTIMATORS[0]
    weighed = f"{trial.kind}, words weighed again" if is_bayes else estimator
    how = f"{trial.folds}-fold cross-validation {_manner(trial)}"
    rows = [
        ("naive Bayes alone", *_figures(trial.naive_bayes)),
        (weighed, *_figures(trial.uncalibrated)),
        ("calibrated, at the threshold", *_figures(trial.calibrated)),
    ]
    names = ("model", "precision", "recall", "F1", "AUC", "average precision", "ECE")
    return f"{how}\n\n{_table(names, rows)}\n\n{_naming(trial)}"


def _naming(trial: Trial) -> str:
    """Which naive Bayes names categories, and how often rightly."""
    shares = ", ".join(f"{kind} {shape} {share:.0%}" for kind, shape, share in trial.named if share)
    return (
        f"Categories are named by {' '.join(trial.taxonomy)} naive Bayes. Of left-out samples "
        f"these named the right one: {shares}."
    )


def _manner(trial: Trial) -> str:
    if trial.by_host:
        return "that leaves out whole hosts: the figures are of hosts the model had not seen."
    if trial.host_auc is None:
        return (
            "by page: the samples come from too few hosts to leave whole hosts out, "
            "so these figures flatter the model."
        )
    return (
        f"by page. Leaving out whole hosts gave an AUC of only {trial.host_auc:.3f}: the topic's "
        "words differ from host to host. Expect less than these figures on new hosts, "
        "and add samples of more hosts."
    )


def _figures(quality: Quality) -> tuple[str, ...]:
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


def _reliability(trial: Trial) -> str:
    names = ("samples", "mean relevance", "truly good")
    before, after = (
        _table(names, [_bin(one) for one in bins]) for bins in (trial.bins_before, trial.bins_after)
    )
    return (
        f"Before (expected calibration error {trial.uncalibrated.ece:.3f}):\n\n{before}\n\n"
        f"After, by a curve fitted on the other folds (expected calibration error "
        f"{trial.calibrated.ece:.3f}):\n\n{after}"
    )


def _bin(one: Bin) -> tuple[str, ...]:
    return f"{one.count:.6g}", f"{one.predicted:.3f}", f"{one.observed:.3f}"


def _parts(model: TrainedModel) -> list[tuple[str, str]]:
    judge = model.classifier
    return [
        ("words", str(len(judge.vocabulary))),
        ("categories after merging", str(len(judge.taxonomy.categories))),
        (
            "relevance",
            f"slope {judge.calibration.curve.slope:.3f}, offset "
            f"{judge.calibration.curve.offset + judge.calibration.shift:.3f}, "
            f"{len(judge.calibration.curve.points)} isotonic steps",
        ),
        ("nats per unit of short texts", f"{judge.calibration.verdict_slope:.3f}"),
    ]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
