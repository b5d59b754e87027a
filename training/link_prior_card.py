"""Measure how well link priors rank the links of each web, and write their model card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from link_prior_fitting import LoggedRun, log_odds, runs_with_both_classes
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from focused.classifier.calibration import expit
from focused.link_scoring.linear_model import DEFAULT_PRIOR, LinkPriorFile
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES
from focused.reports.reliability import count_bins, score_errors

RankFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Ranks n links by their features, shape (n, features); returns shape (n,), best is largest."""


@dataclass(frozen=True)
class WebQuality:
    """The figures of one web, all in [0, 1], from its logged ``runs`` and ``examples``.

    ``on_topic`` is the share of examples on topic. AUCs are means over runs, None without a run
    that has both classes: ``left_out`` of the prior fitted on the other webs, ``all_webs`` of the
    one fitted on all, ``url`` and ``parent`` of that feature alone. Calibration errors as in
    :mod:`focused.reports.reliability`, over all examples.
    """

    web: str
    topics: int
    runs: int
    examples: int
    on_topic: float
    left_out: float | None
    all_webs: float | None
    url: float | None
    parent: float | None
    left_out_error: float
    all_webs_error: float


def measure_web_quality(
    runs: Sequence[LoggedRun], left_out: LinkPriorFile, all_webs: LinkPriorFile
) -> WebQuality:
    """Measure the priors on the web of ``runs``, at least one."""
    labels = np.concatenate([run.on_topic for run in runs])
    return WebQuality(
        web=runs[0].web,
        topics=len({run.topic for run in runs}),
        runs=len(runs),
        examples=len(labels),
        on_topic=float(labels.mean()),
        left_out=mean_auc(runs, lambda rows: log_odds(left_out, rows)),
        all_webs=mean_auc(runs, lambda rows: log_odds(all_webs, rows)),
        url=mean_auc(runs, _rank_by_feature("url")),
        parent=mean_auc(runs, _rank_by_feature("parent")),
        left_out_error=_calibration_error(runs, left_out),
        all_webs_error=_calibration_error(runs, all_webs),
    )


def mean_auc(runs: Sequence[LoggedRun], rank: RankFunction) -> float | None:
    """Area under the ROC curve, mean over runs with both classes; None without such a run."""
    areas = [roc_auc_score(run.on_topic, rank(run.rows)) for run in runs_with_both_classes(runs)]
    return float(np.mean(areas)) if areas else None


def group_by_web(runs: Sequence[LoggedRun]) -> Mapping[str, list[LoggedRun]]:
    """Group runs by web, in the order met."""
    found: dict[str, list[LoggedRun]] = {}
    for run in runs:
        found.setdefault(run.web, []).append(run)
    return found


def _rank_by_feature(name: str) -> RankFunction:
    return lambda rows: rows[:, FEATURE_INDEX[name]]


def _calibration_error(runs: Sequence[LoggedRun], prior: LinkPriorFile) -> float:
    scores = np.concatenate([expit(log_odds(prior, run.rows)) for run in runs])
    labels = np.concatenate([run.on_topic for run in runs])
    return float(score_errors(count_bins(scores, labels)).calibration_error)


_INTRODUCTION = """\
The link priors are initial weights of the link scorer: a linear model in log-odds over its
[features](../focused/link_scoring/link_features.py), fitted on recorded webs. A crawl starts
from a prior and updates it online. It contains no word, host or topic. Files:
[`link-priors/`](link-priors/); `training.link_prior` of a topic file selects one."""

_HELD_OUT = """\
Use `all-webs` for webs that it was not fitted on, such as the live Web. A crawl of a recorded web
whose labels will score it must start from the prior fitted without that web, as the shipped
topics do: what guides a crawl must not have seen the ground truth."""

_FITTING = """\
The simulated crawls start from five on-topic and from five off-topic pages. They use hand-set
weights but sample links in proportion to their odds, one in five of them uniformly, so that the
log does not only hold what those weights prefer. The log has a link's features at the time it was
fetched, and whether its page is on topic by the web's labels. Seeds, training pages, duplicates
and unlabelled pages are left out.

The fit is a logistic regression with an intercept for each run, signs constrained, and a ridge
penalty of 2,000 examples; each web has the same weight, and so has each run of a web. Seeds
differ from the benchmark's."""

_QUALITY = """\
AUC: how often a link to an on-topic page is ranked before another link of the same run, mean over
runs (.5 is random). Calibration error: mean distance of scores from shares. *Left out*: the
prior fitted without this web. *All webs*: `all-webs`, which was fitted on it and therefore
flatters. *URL*, *parent*: the classifier's score of the URL's words, or the relevance of the
linking page, alone. In a crawl online training improves on these."""

_LIMITS = """\
- Four webs, all in English: a documentation web, two dictionaries, a package index. Three of
  them have one to three hosts. None has advertisements, spam, forums or news.
- Labels come from rules or from editors, not from reading the pages, and miss some.
- Topics and webs are those of the benchmarks. A benchmark's prior never saw labels of the web it
  crawls, but features and fitting were developed on all four webs.
- The model is linear: it cannot represent that two features are redundant in one place and not
  in another.
- A noisy crawl finds fewer on-topic pages than a real one: the bias is low, and online training
  raises it."""

_LICENCES = """\
Data: Debian documentation packages and package index (each package's own free licence, by
Debian's Free Software Guidelines), FOLDOC (GFDL 1.1 or later), WordNet 3.0 (WordNet licence);
no text of theirs is in these files."""


def render_prior_card(
    priors: Mapping[str, LinkPriorFile], qualities: Sequence[WebQuality], command: str
) -> str:
    """Render the card as Markdown; ``command`` fits the priors again."""
    whole = priors[DEFAULT_PRIOR]
    runs = sum(each.runs for each in qualities)
    topics = sum(each.topics for each in qualities)
    parts = [
        "# The link priors",
        _INTRODUCTION,
        _HELD_OUT,
        "## Fitted on",
        f"{whole.examples:,} links that {runs} crawls followed, of {topics} topics on "
        f"{len(qualities)} recorded webs.",
        _fitted_on(qualities),
        _FITTING,
        "## Weights",
        "In nats for a unit of the feature; in brackets for a standard deviation, "
        f"of `{DEFAULT_PRIOR}`.",
        _weights(priors),
        "## Quality",
        _QUALITY,
        _quality(qualities),
        "## Fit them again",
        f"```\n{command}\n```",
        "The same webs and seed give the same bytes.",
        "## Limits",
        _LIMITS,
        _LICENCES,
    ]
    return "\n\n".join(parts) + "\n"


def _fitted_on(qualities: Sequence[WebQuality]) -> str:
    rows = [
        (q.web, str(q.topics), str(q.runs), f"{q.examples:,}", f"{q.on_topic:.1%}")
        for q in qualities
    ]
    return _markdown_table(("web", "topics", "crawls", "links", "led to a page on topic"), rows)


def _weights(priors: Mapping[str, LinkPriorFile]) -> str:
    whole = priors[DEFAULT_PRIOR]
    rows = [
        (
            f"`{name}`",
            *(f"{prior.weights[name]:.2f}" for prior in priors.values()),
            f"({whole.weights[name] * whole.scales[name]:.2f})",
        )
        for name in FEATURE_NAMES
    ]
    biases = ("bias", *(f"{prior.bias:.2f}" for prior in priors.values()), "")
    return _markdown_table(
        ("feature", *(f"`{name}`" for name in priors), "(standardised)"), [*rows, biases]
    )


def _quality(qualities: Sequence[WebQuality]) -> str:
    rows = [
        (
            each.web,
            *map(_format_score, (each.left_out, each.all_webs, each.url, each.parent)),
            *map(_format_score, (each.left_out_error, each.all_webs_error)),
        )
        for each in qualities
    ]
    names = ("web", "left out", "all webs", "URL", "parent")
    return _markdown_table((*names, "calibration error, left out", "all webs"), rows)


def _format_score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
