"""Explain why a URL was fetched or not: its path from a seed, its in-links, its other URLs.

:func:`explain_url` finds the explanation, :func:`print_explanation` prints it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
from rich.console import Console

from focused.archive.archive import PageRow
from focused.archive.crawl_tables import open_tables, read_page_rows, read_scope, url_spellings
from focused.errors import ConfigurationError
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.orderings.policy_names import has_probability_scores
from focused.reports.crawl_folder import CrawlFolder, read_crawl, read_links_to
from focused.reports.crawl_report import policy_name
from focused.reports.formatting import print_line, single_line
from focused.reports.reliability import (
    MIN_BIN_PAGES,
    ReliabilityTable,
    bin_edges,
    bin_indices,
    reliability,
)
from focused.web.scope_filter import ScopeFilter

NOT_FETCHED = "not fetched"
"""The outcome of a URL that has no row."""

_MAX_HOPS = 20
_MAX_STEPS = 1000
_MAX_NEAR, _MAX_COMPARED = 5, 5000
_MAX_FEATURES, _MAX_MENTIONS = 8, 10


class PageAlias(NamedTuple):
    """Another URL of the same page; ``outcome`` is its outcome or kind of failure.

    ``relation`` is where the URL stands: "Redirects to", "Canonical URL" or "Canonical URL of".
    """

    relation: str
    url: str
    outcome: str


class ScoredInLink(NamedTuple):
    """A link on a fetched page to a URL that was not fetched."""

    source: str
    anchor: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why ``url`` was fetched or not.

    ``steps`` lead from the seed to ``url``, or to the source of its best link when it was not
    fetched; the ``features`` of each begin with the largest contribution by the prior's weights.
    ``in_links``, best score first, are then all links to it. ``path_problem`` says why the steps
    start at no seed, ``out_of_scope`` why the topic's scope excludes the URL; both may be empty.
    ``reliability`` holds the outcomes of this crawl's scores, None where nothing was scored.
    ``scores_only_rank``: the scores are no probabilities. ``aliases`` are other URLs of the same
    page.
    """

    url: str
    outcome: str
    steps: tuple[PageRow, ...]
    in_links: tuple[ScoredInLink, ...]
    path_problem: str
    out_of_scope: str
    reliability: ReliabilityTable | None
    scores_only_rank: bool
    aliases: tuple[PageAlias, ...]


def explain_url(folder: Path, url: str) -> Explanation:
    """Explain one URL of the crawl in ``folder``.

    ``url`` is normalised, and a missing scheme is added. Raises :class:`StateError` when the folder
    cannot be read, :class:`ConfigurationError` with similar URLs when the crawl never met the URL.
    """
    spellings = url_spellings(url)
    with open_tables(folder) as tables:
        crawl = read_crawl(folder, tables)
        pages = crawl.pages.drop_duplicates("url", keep="last").set_index("url", drop=False)
        found = next((each for each in spellings if each in pages.index), None)
        in_links: list[ScoredInLink] = []
        if found is not None:
            source, aliases = found, tuple(_followed_aliases(pages, found))
        else:
            for found in spellings:
                in_links, aliases = _in_links(tables, found), _canonical_aliases(pages, found)
                if in_links or aliases:
                    break
            else:
                problem = "this crawl neither fetched it nor found a link to it"
                raise ConfigurationError(unknown_url_message(url, problem, pages.index.tolist()))
            source = in_links[0].source if in_links else aliases[0].url
        steps, path_problem = _path_from_seed(crawl, tables, pages, source)
    ranks = not has_probability_scores(policy_name(crawl))
    is_fetched = found in pages.index
    depth = steps[-1].depth + 1 if steps else 0
    return Explanation(
        url=found,
        outcome=steps[-1].outcome if is_fetched else NOT_FETCHED,
        steps=steps,
        in_links=tuple(in_links),
        path_problem=path_problem,
        out_of_scope="" if is_fetched else _scope_refusal(folder, found, depth),
        reliability=None if ranks else reliability(crawl.pages),
        scores_only_rank=ranks,
        aliases=aliases,
    )


def _followed_aliases(pages: pd.DataFrame, url: str) -> Iterator[PageAlias]:
    """Follow redirects from ``url``, or its canonical link."""
    seen = {url}
    while len(seen) <= _MAX_HOPS and isinstance(target := pages.at[url, "points_to"], str):
        redirected = pages.at[url, "outcome"] == "redirected"
        relation = "Redirects to" if redirected else "Canonical URL"
        yield PageAlias(relation, target, _outcome_of(pages, target))
        if not redirected or target in seen or target not in pages.index:
            return
        seen.add(target)
        url = target


def _canonical_aliases(pages: pd.DataFrame, url: str) -> tuple[PageAlias, ...]:
    """The first fetched page that names ``url`` as canonical, if any."""
    naming = pages[pages["points_to"].eq(url) & pages["outcome"].ne("redirected")]["url"]
    return tuple(
        PageAlias("Canonical URL of", first, _outcome_of(pages, first)) for first in naming[:1]
    )


def _outcome_of(pages: pd.DataFrame, url: str) -> str:
    """The outcome of ``url``, or its kind of failure."""
    if url not in pages.index:
        return NOT_FETCHED
    return str(pages.at[url, "failure"] or pages.at[url, "outcome"])


def _path_from_seed(
    crawl: CrawlFolder, tables: Path, pages: pd.DataFrame, url: str
) -> tuple[tuple[PageRow, ...], str]:
    """The steps from the seed to ``url``, and why they start at no seed if they do not."""
    if url not in pages.index:
        return (), f"{url} has no row in pages.parquet"
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
    weights = _prior_weights(crawl)

    def contribution(item: tuple[str, float]) -> float:
        # Features of a custom scorer have no weights here: sort them by value.
        return abs(item[1] * weights.get(item[0], 1.0))

    rows = {row.url: row for row in read_page_rows(tables, chain)}
    steps = []
    for row in (rows[each] for each in reversed(chain)):
        found = {} if row.parent is None else row.features
        ordered = dict(sorted(found.items(), key=contribution, reverse=True))
        steps.append(msgspec.structs.replace(row, features=ordered))
    return tuple(steps), path_problem


def _prior_weights(crawl: CrawlFolder) -> Mapping[str, float]:
    """The weights of the crawl's link prior; empty when it cannot be loaded."""
    try:
        prior = load_link_prior(crawl.topic["training"]["link_prior"])
    except (ConfigurationError, KeyError):
        prior = None
    return {} if prior is None else dict(zip(FEATURE_NAMES, prior.weights.tolist(), strict=True))


def _in_links(tables: Path, url: str) -> list[ScoredInLink]:
    in_links = [
        ScoredInLink(row["source"], row["anchor"] or "", row["score"])
        for row in read_links_to(tables, url)
    ]
    return sorted(in_links, key=lambda m: -1.0 if m.score is None else m.score, reverse=True)


def _scope_refusal(folder: Path, url: str, depth: int) -> str:
    """Why the crawl's scope excludes ``url``; empty when it does not."""
    scope = read_scope(folder)
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
    is_fetched, in_links = explanation.outcome != NOT_FETCHED, explanation.in_links
    best = max((link.score for link in in_links if link.score is not None), default=None)
    print_line(console, single_line(explanation.url), style="bold")
    if is_fetched:
        steps = _count("step", len(explanation.steps) - 1)
        headline = f"{explanation.outcome}, {steps} from its seed:"
    elif in_links:
        why = _why_not_fetched(explanation, best)
        headline = f"not fetched, though found in {_count('link', len(in_links))}: {why}"
    else:
        headline = "not fetched, and no link to it is stored."
    print_line(console, headline, style="bold")
    if not is_fetched and best is not None:
        _print_score_meaning(best, explanation, console, indent="")
    for alias in explanation.aliases:
        outcome = single_line(alias.outcome)
        print_line(console, f"{alias.relation} {single_line(alias.url)}: {outcome}")
    if explanation.path_problem:
        print_line(console, f"The path is incomplete: {explanation.path_problem}.")
    for number, step in enumerate(explanation.steps):
        is_seed = number == 0 and not explanation.path_problem
        _print_step(step, explanation, console, is_seed=is_seed)
    for link in in_links[:_MAX_MENTIONS]:
        print_line(console, f"  linked from {single_line(link.source)}")
        print_line(console, f"    {_format_link(link.anchor, link.score, explanation)}")
    if len(in_links) > _MAX_MENTIONS:
        print_line(console, f"  and {len(in_links) - _MAX_MENTIONS:,} more links")


def _why_not_fetched(explanation: Explanation, best: float | None) -> str:
    if explanation.out_of_scope:
        return f"out of scope ({explanation.out_of_scope})."
    if best is None:
        return "no link to it was scored."
    return (
        f"its best score was {best:.2f}; better ones came first, or its host's page limit was "
        "reached."
    )


def _print_step(
    step: PageRow, explanation: Explanation, console: Console, *, is_seed: bool
) -> None:
    print_line(console, f"{'seed' if is_seed else ' ->'} {single_line(step.url)}", style="cyan")
    if not is_seed:
        print_line(console, f"       {_format_link(step.anchor, step.score, explanation)}")
        if step.depth and step.score is not None:
            _print_score_meaning(step.score, explanation, console, indent="       ")
        for name, value in list(step.features.items())[:_MAX_FEATURES]:
            print_line(console, f"         {value:+8.3f}  {single_line(name)}")
        if len(step.features) > _MAX_FEATURES:
            hidden = _count("weaker feature", len(step.features) - _MAX_FEATURES)
            print_line(console, f"                   and {hidden}")
    print_line(console, f"       {_format_outcome(step)}")


def _format_link(anchor: str, score: float | None, explanation: Explanation) -> str:
    shown = f'anchor "{single_line(anchor, 100)}"' if single_line(anchor) else "no anchor"
    if score is None:
        return f"{shown}, not scored"
    is_rank = ", a rank, not a probability" if explanation.scores_only_rank else ""
    return f"{shown}, score {score:.2f}{is_rank}"


def _print_score_meaning(
    score: float, explanation: Explanation, console: Console, *, indent: str
) -> None:
    """Print the outcomes of this crawl's links with such a score, where it is a probability."""
    if explanation.scores_only_rank:
        return
    low, high = bin_edges(int(bin_indices([score])[0]))
    such = f"with a score of {low:.1f} to {high:.1f}"
    known = None if explanation.reliability is None else explanation.reliability.bin_of(score)
    if known is None:
        print_line(console, f"{indent}no page was fetched {such}: its meaning is unknown")
        return
    good = round(known.on_topic * known.pages)
    were = "was" if good == 1 else "were"
    is_known = known.pages >= MIN_BIN_PAGES
    meaning = f"{known.on_topic:.0%}" if is_known else "too few to tell what the score means"
    pages = _count("page", known.pages)
    print_line(console, f"{indent}of {pages} fetched {such}, {good:,} {were} on topic: {meaning}")


def _format_outcome(step: PageRow) -> str:
    match step.outcome:
        case "failed":
            status = f", HTTP {step.status}" if step.status else ""
            return f"failed: {single_line(step.failure) or 'unknown'}{status}"
        case "redirected":
            return f"redirected, HTTP {step.status}"
        case "feed":
            return "a feed or sitemap: used for its links, not classified"
    title = f'"{single_line(step.title, 80)}": ' if single_line(step.title) else ""
    sample = ", a training sample" if step.training else ""
    if step.relevance is None:
        return f"{title}fetched, not classified{sample}"
    if step.outcome == "noindex":
        return f"relevance {step.relevance:.2f}{sample}, dropped (noindex)"
    verdict = "on topic" if step.on_topic else "off topic"
    return f"{title}relevance {step.relevance:.2f}, {verdict}{sample}"


def _count(noun: str, count: int) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
