"""Explain why a URL was fetched or not: its path from a seed, its in-links, its other URLs.

:func:`explain_url` finds the explanation, :func:`print_explanation` prints it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.console import Console
from rich.text import Text

from focused.archive.crawl_tables import open_tables, url_spellings
from focused.errors import ConfigurationError, escape_control_characters
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.orderings.policy_names import has_probability_scores
from focused.reports.crawl_folder import (
    CrawlFolder,
    read_crawl,
    read_features,
    read_links_to,
)
from focused.reports.crawl_report import policy_name
from focused.reports.formatting import single_line
from focused.reports.reliability import (
    MIN_BIN_PAGES,
    ReliabilityTable,
    bin_edges,
    bin_indices,
    reliability,
)
from focused.topic import scope_from_json
from focused.web.scope_filter import ScopeFilter

_MAX_HOPS = 20
_REDIRECTED, _NOT_FETCHED = "redirected", "not fetched"
_MAX_STEPS = 1000
_MAX_NEAR, _MAX_COMPARED = 5, 5000
_ALIASES = {
    "redirect": "Redirects to",
    "canonical": "Canonical URL",
    "canonical-of": "Canonical URL of",
}
_MAX_FEATURES, _MAX_MENTIONS = 8, 10


@dataclass(frozen=True, slots=True)
class PageAlias:
    """Another URL of the same page, with its outcome or kind of failure.

    ``relation`` is ``redirect`` (a redirect leads to ``url``), ``canonical`` (the page names
    ``url`` as canonical) or ``canonical-of`` (a page at ``url`` names this one).
    """

    relation: Literal["redirect", "canonical", "canonical-of"]
    url: str
    outcome: str


def follow_aliases(pages: pd.DataFrame, url: str) -> tuple[PageAlias, ...]:
    """Follow redirects from ``url``, or its canonical link."""
    aliases: list[PageAlias] = []
    seen = {url}
    while len(aliases) < _MAX_HOPS and isinstance(target := pages.at[url, "points_to"], str):
        redirected = pages.at[url, "outcome"] == _REDIRECTED
        aliases.append(
            PageAlias("redirect" if redirected else "canonical", target, _outcome_of(pages, target))
        )
        if not redirected or target in seen or target not in pages.index:
            break
        seen.add(target)
        url = target
    return tuple(aliases)


def find_canonical_alias(pages: pd.DataFrame, url: str) -> tuple[PageAlias, ...]:
    """The first fetched page that names ``url`` as canonical, if any."""
    naming = pages.index[pages["points_to"].eq(url) & pages["outcome"].ne(_REDIRECTED)]
    return tuple(
        PageAlias("canonical-of", str(first), _outcome_of(pages, str(first)))
        for first in naming[:1]
    )


def _outcome_of(pages: pd.DataFrame, url: str) -> str:
    """The outcome of ``url``, or its kind of failure."""
    if url not in pages.index:
        return _NOT_FETCHED
    failure = pages.at[url, "failure"]
    return failure if isinstance(failure, str) and failure else str(pages.at[url, "outcome"])


class UrlOutcome(StrEnum):
    """What happened to the explained URL."""

    FETCHED = "fetched"
    FEED = "feed"
    NOINDEX = "noindex"
    REDIRECTED = "redirected"
    FAILED = "failed"
    NOT_FETCHED = "not fetched"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One URL on the path from a seed.

    ``score`` in [0, 1] was predicted before the fetch (None for a seed) from ``features``, the
    largest contribution first by the prior's weights. ``relevance`` in [0, 1] is the classifier's
    (None without a page).
    """

    url: str
    title: str
    anchor: str
    score: float | None
    features: tuple[tuple[str, float], ...]
    outcome: str
    failure: str
    status: int
    relevance: float | None
    on_topic: bool
    training: bool
    depth: int


@dataclass(frozen=True, slots=True)
class ScoredInLink:
    """A link on a fetched page to a URL that was not fetched."""

    source: str
    anchor: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why ``url`` was fetched or not.

    ``steps`` lead from the seed to ``url``, or to the source of its best link when it was not
    fetched; ``in_links``, best score first, are then all links to it. ``path_problem`` says why the
    steps start at no seed, ``out_of_scope`` why the topic's scope excludes the URL; both may be
    empty. ``reliability`` holds the outcomes of this crawl's scores, None where nothing was scored.
    ``scores_only_rank``: the scores are no probabilities. ``aliases`` are other URLs of the same
    page.
    """

    url: str
    outcome: UrlOutcome
    steps: tuple[PathStep, ...]
    in_links: tuple[ScoredInLink, ...] = ()
    path_problem: str = ""
    out_of_scope: str = ""
    reliability: ReliabilityTable | None = None
    scores_only_rank: bool = False
    aliases: tuple[PageAlias, ...] = ()


def explain_url(folder: Path, url: str) -> Explanation:
    """Explain one URL of the crawl in ``folder``.

    ``url`` is normalised, and a missing scheme is added. Raises :class:`StateError` when the folder
    cannot be read, :class:`ConfigurationError` with similar URLs when the crawl never met the URL.
    """
    with open_tables(folder) as tables:
        crawl = read_crawl(folder, tables)
        explanation = _explain_from_tables(crawl, tables, url)
    if not has_probability_scores(policy_name(crawl)):
        return replace(explanation, scores_only_rank=True)
    return replace(explanation, reliability=reliability(crawl.pages))


def _explain_from_tables(crawl: CrawlFolder, tables: Path, url: str) -> Explanation:
    pages = crawl.pages.drop_duplicates("url", keep="last").set_index("url")
    spellings = url_spellings(url)
    for spelling in spellings:
        if spelling in pages.index:
            steps, path_problem = _path_from_seed(crawl, tables, pages, spelling)
            aliases = follow_aliases(pages, spelling)
            return Explanation(
                spelling,
                UrlOutcome(steps[-1].outcome),
                steps,
                path_problem=path_problem,
                aliases=aliases,
            )
    for spelling in spellings:
        in_links, named = _in_links(tables, spelling), find_canonical_alias(pages, spelling)
        if in_links or named:
            source = in_links[0].source if in_links else named[0].url
            steps, path_problem = (
                _path_from_seed(crawl, tables, pages, source)
                if source in pages.index
                else ((), f"{source} has no row in pages.parquet")
            )
            return Explanation(
                spelling,
                UrlOutcome.NOT_FETCHED,
                steps,
                tuple(in_links),
                path_problem,
                _scope_refusal(crawl.topic, spelling, steps[-1].depth + 1 if steps else 0),
                aliases=named,
            )
    raise ConfigurationError(
        unknown_url_message(
            url, "this crawl neither fetched it nor found a link to it", pages.index.tolist()
        )
    )


def _path_from_seed(
    crawl: CrawlFolder, tables: Path, pages: pd.DataFrame, url: str
) -> tuple[tuple[PathStep, ...], str]:
    """The steps from the seed to ``url``, and why they start at no seed if they do not."""
    chain, path_problem = [url], ""
    while isinstance(parent := pages.at[chain[-1], "parent"], str):
        if parent in chain:
            path_problem = f"the chain of parents has a cycle at {parent}"
        elif parent not in pages.index:
            path_problem = f"its parent {parent} has no row in pages.parquet"
        elif len(chain) == _MAX_STEPS:
            path_problem = f"the chain of parents is longer than {_MAX_STEPS} steps"
        if path_problem:
            break
        chain.append(parent)
    features, weights = read_features(tables, chain), _prior_weights(crawl)
    rows = pages.loc[chain].to_dict("index")
    steps = (_path_step(str(u), rows[u], features.get(u, {}), weights) for u in reversed(chain))
    return tuple(steps), path_problem


def _prior_weights(crawl: CrawlFolder) -> Mapping[str, float]:
    """The weights of the crawl's link prior; empty when it cannot be loaded."""
    training = crawl.topic.get("training")
    try:
        prior = load_link_prior(str(training["link_prior"])) if isinstance(training, dict) else None
    except (ConfigurationError, KeyError):
        prior = None
    return {} if prior is None else dict(zip(FEATURE_NAMES, prior.weights.tolist(), strict=True))


def _path_step(
    url: str,
    row: Mapping[Any, Any],
    features: Mapping[str, float],
    weights: Mapping[str, float],
) -> PathStep:
    # Features of a custom scorer have no weights here: sort them by value.
    contributions = {name: abs(value * weights.get(name, 1.0)) for name, value in features.items()}
    seed = not isinstance(row["parent"], str)
    return PathStep(
        url=url,
        title=_text_or_empty(row["title"]),
        anchor=_text_or_empty(row["anchor"]),
        score=None if seed else _number_or_none(row["score"]),
        features=()
        if seed
        else tuple(sorted(features.items(), key=lambda item: -contributions[item[0]])),
        outcome=str(row["outcome"]),
        failure=_text_or_empty(row["failure"]),
        status=int(_number_or_none(row["status"]) or 0),
        relevance=_number_or_none(row["relevance"]),
        on_topic=bool(row["on_topic"]),
        training=bool(row["training"]),
        depth=int(_number_or_none(row["depth"]) or 0),
    )


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number_or_none(value: object) -> float | None:
    """Convert pandas' NaN to None."""
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def _in_links(tables: Path, url: str) -> list[ScoredInLink]:
    in_links = [
        ScoredInLink(row["source"], _text_or_empty(row["anchor"]), _number_or_none(row["score"]))
        for row in read_links_to(tables, url)
    ]
    return sorted(in_links, key=lambda m: -1.0 if m.score is None else m.score, reverse=True)


def _scope_refusal(topic: Mapping[str, Any], url: str, depth: int) -> str:
    """Why the crawl's scope excludes ``url``; empty when it does not."""
    scope = scope_from_json(topic)
    return "" if scope is None else ScopeFilter(scope).refusal_reason(url, depth) or ""


def unknown_url_message(url: str, problem: str, known: Sequence[str]) -> str:
    """Return the message for a URL with a problem; it suggests similar ones of ``known``."""
    near = _similar_urls(url, known)
    message = f"{url}: {problem}"
    return f"{message}; similar URLs are\n  " + "\n  ".join(near) if near else message


def _similar_urls(url: str, known: Sequence[str]) -> list[str]:
    """URLs that contain what was typed, then similar ones of its host."""
    needle = url.strip().partition("://")[2] or url.strip()
    needle = needle.rstrip("/").casefold()
    holding = [other for other in known if needle and needle in other.casefold()]
    host = needle.partition("/")[0]
    same_host = [other for other in known if f"//{host}" in other.casefold()]
    alike = difflib.get_close_matches(
        url, (same_host or known)[:_MAX_COMPARED], n=_MAX_NEAR, cutoff=0.6
    )
    return list(dict.fromkeys([*sorted(holding, key=len)[:_MAX_NEAR], *alike]))[:_MAX_NEAR]


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print each step with anchor, score, features and classification."""
    for line in _headline(explanation):
        _print_line(console, line, style="bold")
    if explanation.outcome is UrlOutcome.NOT_FETCHED:
        best = _best_score(explanation.in_links)
        for line in _score_meaning(best, explanation):
            _print_line(console, line)
    for alias in explanation.aliases:
        _print_line(
            console,
            f"{_ALIASES[alias.relation]} {single_line(alias.url)}: {single_line(alias.outcome)}",
        )
    if explanation.path_problem:
        _print_line(console, f"The path is incomplete: {explanation.path_problem}.")
    for number, step in enumerate(explanation.steps):
        first = number == 0 and not explanation.path_problem
        _print_step(step, explanation, console, seed=first)
    for mention in explanation.in_links[:_MAX_MENTIONS]:
        _print_line(console, f"  linked from {single_line(mention.source)}")
        _print_line(
            console,
            f"    {_format_anchor(mention.anchor)}, {_format_score(mention.score, explanation)}",
        )
    hidden = len(explanation.in_links) - _MAX_MENTIONS
    if hidden > 0:
        _print_line(console, f"  and {hidden:,} more links")


def _headline(explanation: Explanation) -> list[str]:
    url = single_line(explanation.url)
    if explanation.outcome is not UrlOutcome.NOT_FETCHED:
        steps = len(explanation.steps) - 1
        return [f"{url}", f"{explanation.outcome}, {steps} {_plural('step', steps)} from its seed:"]
    links = len(explanation.in_links)
    if not links:
        return [url, "not fetched, and no link to it is stored."]
    return [
        f"{url}",
        f"not fetched, though found in {links:,} {_plural('link', links)}: "
        f"{_why_not_fetched(explanation)}",
    ]


def _why_not_fetched(explanation: Explanation) -> str:
    if explanation.out_of_scope:
        return f"out of scope ({explanation.out_of_scope})."
    best = _best_score(explanation.in_links)
    if best is None:
        return "no link to it was scored."
    return (
        f"its best score was {best:.2f}; better ones came first, or its host's page limit was "
        "reached."
    )


def _best_score(in_links: tuple[ScoredInLink, ...]) -> float | None:
    return max((m.score for m in in_links if m.score is not None), default=None)


def _print_step(step: PathStep, explanation: Explanation, console: Console, *, seed: bool) -> None:
    _print_line(console, f"{'seed' if seed else ' ->'} {single_line(step.url)}", style="cyan")
    if not seed:
        _print_line(
            console,
            f"       {_format_anchor(step.anchor)}, {_format_score(step.score, explanation)}",
        )
        for line in _score_meaning(None if step.depth == 0 else step.score, explanation):
            _print_line(console, f"       {line}")
        for name, value in step.features[:_MAX_FEATURES]:
            _print_line(console, f"         {value:+8.3f}  {single_line(name)}")
        hidden = len(step.features) - _MAX_FEATURES
        if hidden > 0:
            _print_line(
                console, f"                   and {hidden} weaker {_plural('feature', hidden)}"
            )
    _print_line(console, f"       {_format_outcome(step)}")


def _format_anchor(anchor: str) -> str:
    return f'anchor "{single_line(anchor, 100)}"' if single_line(anchor) else "no anchor"


def _format_score(score: float | None, explanation: Explanation) -> str:
    if score is None:
        return "not scored"
    if explanation.scores_only_rank:
        return f"score {score:.2f}, a rank, not a probability"
    return f"score {score:.2f}"


def _score_meaning(score: float | None, explanation: Explanation) -> list[str]:
    """The outcomes of this crawl's links with such a score, as a line or none."""
    if score is None or explanation.scores_only_rank:
        return []
    low, high = bin_edges(int(bin_indices([score])[0]))
    such = f"with a score of {low:.1f} to {high:.1f}"
    known = None if explanation.reliability is None else explanation.reliability.bin_of(score)
    if known is None:
        return [f"no page was fetched {such}: its meaning is unknown"]
    good = round(known.on_topic * known.pages)
    text = f"of {known.pages:,} {_plural('page', known.pages)} fetched {such}, {good:,}"
    text += " was on topic" if good == 1 else " were on topic"
    if known.pages < MIN_BIN_PAGES:
        return [f"{text}: too few to tell what the score means"]
    return [f"{text}: {known.on_topic:.0%}"]


def _format_outcome(step: PathStep) -> str:
    if step.outcome == "failed":
        status = f", HTTP {step.status}" if step.status else ""
        return f"failed: {single_line(step.failure) or 'unknown'}{status}"
    if step.outcome == "redirected":
        return f"redirected, HTTP {step.status}"
    if step.outcome == "feed":
        return "a feed or sitemap: used for its links, not classified"
    title = f'"{single_line(step.title, 80)}": ' if single_line(step.title) else ""
    sample = ", a training sample" if step.training else ""
    if step.relevance is None:
        return f"{title}fetched, not classified{sample}"
    if step.outcome == "noindex":
        return f"relevance {step.relevance:.2f}{sample}, dropped (noindex)"
    verdict = "on topic" if step.on_topic else "off topic"
    return f"{title}relevance {step.relevance:.2f}, {verdict}{sample}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _print_line(console: Console, line: str, style: str = "") -> None:
    """Print one line without markup, highlighting or wrapping."""
    console.print(Text(escape_control_characters(line), style=style), soft_wrap=True)
