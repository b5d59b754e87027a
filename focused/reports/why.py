"""Explain why a URL was fetched or not: its path from a seed, its in-links, its other URLs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from focused.errors import ConfigurationError
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.orderings.policy_names import has_probability_scores
from focused.reports.crawl_folder import (
    CrawlFolder,
    open_tables,
    read_crawl,
    read_features,
    read_links_to,
)
from focused.reports.crawl_report import policy_name
from focused.reports.reliability import ReliabilityTable, reliability
from focused.topic import scope_from_json
from focused.web.scope_filter import ScopeFilter
from focused.web.urls import normalize_url

_MAX_HOPS = 20
_REDIRECTED, _NOT_FETCHED = "redirected", "not fetched"


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


_MAX_STEPS = 1000
_MAX_NEAR, _MAX_COMPARED = 5, 5000


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
class InLink:
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
    in_links: tuple[InLink, ...] = ()
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


def url_spellings(url: str) -> list[str]:
    """The URL as typed, then normalised as the crawl does."""
    typed = url.strip()
    tried = [typed, normalize_url(typed)]
    if "://" not in typed:
        tried += [normalize_url(f"https://{typed}"), normalize_url(f"http://{typed}")]
    return list(dict.fromkeys(spelling for spelling in tried if spelling))


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


def _in_links(tables: Path, url: str) -> list[InLink]:
    in_links = [
        InLink(row["source"], _text_or_empty(row["anchor"]), _number_or_none(row["score"]))
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
