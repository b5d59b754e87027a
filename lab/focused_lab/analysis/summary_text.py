"""Summarise a comparison in sentences that say when a result is uncertain."""

from __future__ import annotations

from focused.orderings.policy_names import BASELINE, FOCUSED
from focused_lab.analysis.comparison_analysis import ComparisonAnalysis
from focused_lab.analysis.comparison_runs import ORACLE_NAMES
from focused_lab.analysis.number_format import (
    format_count,
    format_mean_share,
    format_median_share_interval,
    format_p_value,
    format_points,
    format_points_interval,
    format_share_interval,
    share,
)
from focused_lab.analysis.paired_comparison import TIE_MARGIN, PairedDifference
from focused_lab.analysis.policy_summary import PolicySummary

_FEW_TOPICS = 5


def summary_sentence(analysis: ComparisonAnalysis) -> str:
    """The main result in a sentence or two."""
    subject = _main_policy(analysis)
    if subject is None or subject.harvest is None:
        return "There is no run to report."
    found = (
        f"{format_mean_share(subject.harvest)} of the pages that {subject.policy} fetched are "
        "on topic"
    )
    against = [
        pair
        for reference in (BASELINE, FOCUSED)
        if (pair := analysis.pairing(subject.policy, reference)) is not None
    ]
    if not against:
        against = [pair for pair in analysis.paired if pair.policy == subject.policy][:1]
    if not against:
        interval = format_share_interval(subject.harvest)
        sure = "" if subject.harvest.low is None else f" (95% interval {interval}%)"
        return f"{found}{sure}. There is no other policy to compare it with."
    pair = against[0]
    other = analysis.summary_of(pair.reference)
    assert other is not None
    return (
        f"{found}, and {format_mean_share(other.harvest)} of those of {other.policy}. "
        f"{describe_difference(pair)}"
    )


def detail_sentences(analysis: ComparisonAnalysis) -> list[str]:
    """Further results, a sentence or two each."""
    subject = _main_policy(analysis)
    if subject is None:
        return []
    sentences = [
        _wins_sentence(analysis, subject),
        _best_other_sentence(analysis, subject),
        _pages_needed_sentence(analysis, subject),
        _oracle_sentence(analysis, subject),
        _ranks_sentence(analysis),
        _classifier_bias_sentence(subject),
    ]
    return [sentence for sentence in sentences if sentence]


def caveats(analysis: ComparisonAnalysis) -> list[str]:
    """Reasons why the figures are less certain than they look."""
    grid = analysis.grid
    sentences = [unreachable_sentence(analysis)] if analysis.unreachable else []
    if not grid.starts:
        return sentences
    topics, starts = len(grid.topics), len(grid.starts)
    if starts == 1:
        sentences.append(
            "There is a single start: no figure has an interval, and chance may explain any "
            "difference."
        )
    elif topics == 1:
        sentences.append(
            "There is a single topic: the intervals apply to other starts on this topic, not "
            "of other topics."
        )
    elif topics < _FEW_TOPICS:
        sentences.append(
            f"There are {topics} topics only: intervals from so few are too narrow, and "
            "ranks of so few can hardly separate policies."
        )
    complete = len(grid.with_runs_of(grid.policies).starts)
    if complete < starts:
        sentences.append(
            f"The comparison is incomplete: {complete:,} of {format_count(starts, 'start')} have "
            "a run "
            "of every policy. Means are over each policy's own runs; differences, ratios and ranks "
            "over shared starts."
        )
    early = [each.policy for each in analysis.summary if each.ended_early > 0.1 * each.runs]
    if early:
        sentences.append(
            f"More than one run in ten of {_join_names(early)} emptied the frontier before the "
            "budget was spent. Harvest flatters such runs; area and recall do not."
        )
    return sentences


def unreachable_sentence(analysis: ComparisonAnalysis) -> str:
    """How many starts are left out because no page on topic can be reached from there."""
    left_out = analysis.unreachable_count
    starts = len(analysis.grid.starts) + left_out
    return (
        f"From {left_out:,} of {format_count(starts, 'start')} no page on topic can be reached "
        "along links that the crawl may follow. No policy can find anything there, so all figures "
        "leave these starts out."
    )


def describe_difference(pair: PairedDifference) -> str:
    """Whether the difference of a pair is significant, in a sentence."""
    by = f"{format_points(pair.difference.mean)} points"
    if pair.difference.low is None:
        return f"The difference is {by}; one start gives no interval."
    interval = f"(95% interval {format_points_interval(pair.difference)})"
    if pair.difference.excludes_zero:
        better = "more" if pair.difference.mean > 0 else "less"
        apart = f"{100 * abs(pair.difference.mean):.1f}"
        return f"From the same starts it harvests {apart} points {better} {interval}."
    return (
        f"From the same starts the difference is {by} {interval}: the interval contains zero, so "
        f"these runs do not show whether {pair.policy} or {pair.reference} is better."
    )


def _main_policy(analysis: ComparisonAnalysis) -> PolicySummary | None:
    """Our own policy, else the best that is no oracle."""
    ours = analysis.summary_of(FOCUSED)
    if ours is not None and ours.runs:
        return ours
    order = [each for each in analysis.best_first if each.runs]
    non_oracles = [each for each in order if each.policy not in (*ORACLE_NAMES, BASELINE)]
    return next(iter(non_oracles or order), None)


def _wins_sentence(analysis: ComparisonAnalysis, subject: PolicySummary) -> str:
    pair = analysis.pairing(subject.policy, BASELINE)
    if pair is None or pair.starts < 2:
        return ""
    return (
        f"Of {format_count(pair.starts, 'start')}, {subject.policy} won {pair.wins:,} against "
        f"{BASELINE}, tied {pair.ties:,} and lost {pair.losses:,} (a tie: within "
        f"{100 * TIE_MARGIN:.1f} points); of {format_count(pair.topics, 'topic')} it was better on "
        f"{pair.topics_won:,} and worse on {pair.topics_lost:,}."
    )


def _best_other_sentence(analysis: ComparisonAnalysis, subject: PolicySummary) -> str:
    rivals = [
        each
        for each in analysis.best_first
        if each.runs and each.policy not in (*ORACLE_NAMES, BASELINE, subject.policy)
    ]
    pair = analysis.pairing(rivals[0].policy, subject.policy) if rivals else None
    if pair is None:
        return ""
    rival = f"The best of the others is {pair.policy} with {format_mean_share(rivals[0].harvest)}"
    if pair.difference.low is None:
        return f"{rival}."
    interval = (
        f"{format_points(pair.difference.mean)} points, 95% interval "
        + format_points_interval(pair.difference)
    )
    if not pair.difference.excludes_zero:
        return (
            f"{rival}; minus {subject.policy} from the same starts: {interval}, which "
            "contains zero: these runs do not separate the two."
        )
    place = "ahead of" if pair.difference.mean > 0 else "behind"
    return f"{rival}, {place} {subject.policy} from the same starts ({interval})."


def _pages_needed_sentence(analysis: ComparisonAnalysis, subject: PolicySummary) -> str:
    row = next((each for each in analysis.pages_to_baseline if each.policy == subject.policy), None)
    if row is None or subject.policy == BASELINE:
        return ""
    goal = f"as many pages on topic as {BASELINE} finds with its whole budget"
    never = f"{row.never:,} of {format_count(row.starts, 'run')} never got there"
    if row.share is None:
        return f"{subject.policy} finds {goal} in fewer than half of its runs: {never}."
    sure = ""
    if row.share_low is not None:
        sure = f" (95% interval {format_median_share_interval(row.share_low, row.share_high)}%)"
    return (
        f"{subject.policy} finds {goal} after {row.share:.0%}{sure} of the pages in the median; "
        f"{never}."
    )


def _oracle_sentence(analysis: ComparisonAnalysis, subject: PolicySummary) -> str:
    of_path, of_labels = subject.ratio_to_path_oracle, subject.ratio_to_oracle
    oracle = analysis.summary_of("oracle")
    attainable = None if oracle is None else oracle.ratio_to_path_oracle
    sentences = []
    if of_path is not None:
        sentences.append(
            f"{subject.policy} reaches {of_path.mean:.0%} of the harvest of the path-oracle, which "
            "knows every page's distance to the topic."
        )
    if of_labels is not None and attainable is not None:
        sentences.append(
            "The oracle, which knows the labels of the frontier's links and nothing beyond, "
            f"reaches {attainable.mean:.0%}: that is what link evidence could attain, and "
            f"{subject.policy} reaches {of_labels.mean:.0%} of it."
        )
    elif of_labels is not None:
        sentences.append(
            f"{subject.policy} reaches {of_labels.mean:.0%} of the harvest of the oracle, which "
            "knows the labels of the frontier's links."
        )
    return " ".join(sentences)


def _ranks_sentence(analysis: ComparisonAnalysis) -> str:
    ranks = analysis.ranks
    if ranks.p is None or ranks.critical_difference is None:
        return ""
    differ = "differ" if ranks.p < 0.05 else "do not differ significantly"
    first = next(iter(ranks.mean_ranks))
    alike = [name for name in ranks.mean_ranks if name != first and not ranks.differ(first, name)]
    text = (
        f"Over {format_count(ranks.topics, 'topic')} the mean ranks {differ} (Friedman, "
        f"{format_p_value(ranks.p)}); the first is {first}"
    )
    if not alike:
        return f"{text}, better than every other by more than the critical difference."
    return f"{text}, not significantly better than {_join_names(alike)}."


def _classifier_bias_sentence(subject: PolicySummary) -> str:
    if subject.classifier_harvest is None or subject.harvest is None:
        return ""
    return (
        f"By its own classifier, the harvest of {subject.policy} would be "
        f"{share(subject.classifier_harvest)} instead of {format_mean_share(subject.harvest)}."
    )


def _join_names(names: list[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
