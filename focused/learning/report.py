"""What is known of a training: its samples, its trial, the words it found."""

from __future__ import annotations

from dataclasses import dataclass

from focused.learning.calibration import Bin, Quality
from focused.learning.topic_classifier import TopicClassifier


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """What the model was trained on; numbers of samples unless named otherwise.

    ``fetched`` samples gave a page, for ``text_only`` ones the directory's
    title and description stood in, ``without_text`` had neither and were left
    out, like ``copies``, which repeated the words of a sample of their side,
    and ``contradictions``, others with the words of a good one. ``conflicts``
    are URLs listed both as good and as other (counted as good), ``repeats``
    further lines of a URL. ``labelled_yes`` and ``labelled_no`` pages were
    labelled; of these labels ``overruled`` were against the directory.
    ``background`` others are of the background class, each of the weight
    ``background_weight``. ``sources`` are file names, ``categories`` pairs of
    name and number.
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
class Trial:
    """Cross-validation: every figure is of samples the model had not seen.

    ``by_host`` tells whether whole hosts were left out, ``host_auc`` the area
    under ROC when they were (None where the samples' hosts do not allow it;
    too low a one sends the trial back to single pages). ``naive_bayes`` is
    plain soft-focus naive Bayes (for comparison, whatever the estimator),
    ``uncalibrated`` the estimator's word weights at face value (both at 0.5),
    ``calibrated`` the finished relevance at the threshold. ``kind`` of naive
    Bayes weighed the words, ``taxonomy``, a kind and a shape, names categories;
    ``named`` has the share of samples named rightly by kind and shape. ``wish``
    is what the threshold was to give, ``granted`` whether it does.
    """

    by_host: bool
    host_auc: float | None
    folds: int
    naive_bayes: Quality
    uncalibrated: Quality
    calibrated: Quality
    bins_before: tuple[Bin, ...]
    bins_after: tuple[Bin, ...]
    kind: str
    taxonomy: tuple[str, str]
    named: tuple[tuple[str, str, float], ...]
    wish: str
    granted: bool


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What the model card tells. ``trained_at`` is in seconds since the epoch.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``digest``
    identifies directory and good list. ``top_words`` are pairs of a word and
    its mean share in a good sample's evidence, largest first. ``warnings`` tell
    what in the samples is likely to mislead, and what to do.
    """

    topic: str
    estimator: str
    trained_at: float
    seed: int
    digest: str
    samples: SampleCounts
    trial: Trial
    top_words: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedModel:
    """What a model file holds: the judge and the report of how it came to be."""

    classifier: TopicClassifier
    report: TrainingReport
