"""What in the samples or the trial is likely to mislead, in words that say what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from focused.learning.calibration import Bools
from focused.learning.keyword_prior import ENOUGH_LABELS
from focused.learning.report import SampleCounts, Trial
from focused.learning.samples import Samples

SOUND_GOOD_SAMPLES = 30
"""With fewer good samples the figures of a trial are rough."""

_OF_ONE_LANGUAGE = 0.6
_RARE = 0.1
_MANY = 0.1


def doubts(
    counts: SampleCounts, trial: Trial, samples: Samples, *, has_keywords: bool = False
) -> tuple[str, ...]:
    """Warnings for the model card, the gravest first."""
    found = (
        _wish(trial),
        _unlabelled(counts) if has_keywords else "",
        _alone(counts),
        _language(samples.good, samples.languages),
        _one_page(samples) or _few(counts),
        _contradictions(counts),
        _one_host(counts, trial),
    )
    return tuple(one for one in found if one)


def _wish(trial: Trial) -> str:
    if trial.granted:
        return ""
    return (
        f"training.precision: no threshold gives {trial.wish} on held-out samples; the highest "
        f"there is, {trial.calibrated.precision:.2f}, was taken (recall "
        f"{trial.calibrated.recall:.2f}). Label pages, give samples of the neighbours that are "
        "taken for the topic, or wish for less"
    )


def _unlabelled(counts: SampleCounts) -> str:
    labelled = counts.labelled_yes + counts.labelled_no
    if min(counts.labelled_yes, counts.labelled_no) >= ENOUGH_LABELS:
        return ""
    return (
        f"{labelled} labelled pages ({counts.labelled_yes} on topic): mostly the keywords decide "
        "which pages are on topic, and the figures of the trial are of pages that the keywords "
        f"chose, so they flatter. With {ENOUGH_LABELS} labels of either kind the labels decide"
    )


def _one_page(samples: Samples) -> str:
    if not samples.halved:
        return ""
    return (
        "a single good sample: the trial learns from one half of it and is tried on the other, so "
        "its figures tell next to nothing, and pages on topic that are not like this one may be "
        "missed; add more pages of the topic"
    )


def _alone(counts: SampleCounts) -> str:
    if not counts.background or counts.other > counts.background:
        return ""
    return (
        "the only other samples are the general background: the model tells the topic from the "
        "Web at large, not from its neighbours; add pages that are near the topic but not on it"
    )


def _language(good: Bools, languages: Sequence[str]) -> str:
    ours, others = (
        Counter(language for language, side in zip(languages, good, strict=True) if side == wanted)
        for wanted in (True, False)
    )
    for known in (ours, others):
        known.pop("", None)
    if not ours or not others:
        return ""
    main, count = ours.most_common(1)[0]
    if count < _OF_ONE_LANGUAGE * ours.total() or others[main] >= _RARE * others.total():
        return ""
    theirs = others.most_common(1)[0][0]
    return (
        f"most good samples are in the language {main!r}, most others in {theirs!r}: the model may "
        f"take the language for the topic; add other samples in {main!r}"
    )


def _few(counts: SampleCounts) -> str:
    if counts.good >= SOUND_GOOD_SAMPLES:
        return ""
    return (
        f"{counts.good} good samples: the figures are rough; they and the relevance become sound "
        f"with some {SOUND_GOOD_SAMPLES}"
    )


def _contradictions(counts: SampleCounts) -> str:
    twofold = counts.contradictions + counts.conflicts
    if twofold < _MANY * counts.good:
        return ""
    return (
        f"{counts.conflicts} URLs and {counts.contradictions} further pages, word for word, are "
        "listed both as good and as other; they count as good. Check the categories in "
        "training.good"
    )


def _one_host(counts: SampleCounts, trial: Trial) -> str:
    if counts.good_hosts > 1 or trial.by_host:
        return ""
    return (
        "all good samples are of one host: its name and menus may be taken for the topic; "
        "add samples of other hosts"
    )
