"""Why a page was fetched, or was not: its path from a seed, step by step."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from focused.errors import ConfigurationError
from focused.evaluation.crawl_folder import (
    CrawlFolder,
    current_tables,
    read_crawl,
    read_evidence,
    read_links_to,
)
from focused.evaluation.reliability import Reliability, reliability
from focused.evaluation.report import policy_of
from focused.evaluation.why_aliases import Alias, led_to, named_by
from focused.learning.evidence import FEATURE_NAMES
from focused.learning.link_prior import load_prior
from focused.policies.probabilities import predicts_probabilities
from focused.topic import described_scope
from focused.web.scope import ScopeFilter
from focused.web.url import normalise

_MAX_STEPS = 1000
_MAX_NEAR, _MAX_COMPARED = 5, 5000


class Fate(StrEnum):
    """What became of the URL that was asked about."""

    FETCHED = "fetched"
    FEED = "feed"
    NOINDEX = "noindex"
    REDIRECTED = "redirected"
    FAILED = "failed"
    NOT_FETCHED = "not fetched"


@dataclass(frozen=True, slots=True)
class Step:
    """One URL on the path from a seed.

    ``score`` in [0, 1] was predicted before the fetch (None for a seed),
    ``evidence`` are the features that made it, weightiest first, by the prior's weights;
    ``relevance`` in [0, 1] was judged after it (None without a page).
    """

    url: str
    title: str
    anchor: str
    score: float | None
    evidence: tuple[tuple[str, float], ...]
    outcome: str
    failure: str
    status: int
    relevance: float | None
    on_topic: bool
    training: bool
    depth: int


@dataclass(frozen=True, slots=True)
class Mention:
    """A link found on a fetched page, to a URL that was not fetched; best score first."""

    source: str
    anchor: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why ``url`` was fetched, or was not.

    ``steps`` lead from the seed to ``url``, or, when it was not fetched, to
    the page with its best link; ``mentions`` are then all links to it.
    ``broken`` tells, where it is not empty, why the steps begin at no seed;
    ``out_of_scope`` why the topic's scope refuses the URL. ``scores`` holds what
    came of this crawl's links by their scores, which is what a score meant; None
    where nothing was predicted. ``ordered_only``: the scores are no probabilities.
    ``aliases`` are other URLs of the same page, as servers and pages say.
    """

    url: str
    fate: Fate
    steps: tuple[Step, ...]
    mentions: tuple[Mention, ...] = ()
    broken: str = ""
    out_of_scope: str = ""
    scores: Reliability | None = None
    ordered_only: bool = False
    aliases: tuple[Alias, ...] = ()


def explain(folder: Path, url: str) -> Explanation:
    """Explain one URL of the crawl in ``folder``.

    ``url`` may be written as the user likes: fragment, missing scheme and the
    like are mended. Raises :class:`StateError` when the folder cannot be
    read, :class:`ConfigurationError` when the crawl never met the URL; the
    message then names near ones.
    """
    with current_tables(folder) as tables:
        crawl = read_crawl(folder, tables)
        told = _explain(crawl, tables, url)
    if not predicts_probabilities(policy_of(crawl)):
        return replace(told, ordered_only=True)
    return replace(told, scores=reliability(crawl.pages))


def _explain(crawl: CrawlFolder, tables: Path, url: str) -> Explanation:
    pages = crawl.pages.drop_duplicates("url", keep="last").set_index("url")
    spellings = _spellings(url)
    for spelling in spellings:
        if spelling in pages.index:
            steps, broken = _path(crawl, tables, pages, spelling)
            aliases = led_to(pages, spelling)
            return Explanation(
                spelling, Fate(steps[-1].outcome), steps, broken=broken, aliases=aliases
            )
    for spelling in spellings:
        mentions, named = _mentions(tables, spelling), named_by(pages, spelling)
        if mentions or named:
            source = mentions[0].source if mentions else named[0].url
            steps, broken = (
                _path(crawl, tables, pages, source)
                if source in pages.index
                else ((), f"{source} has no row in pages.parquet")
            )
            return Explanation(
                spelling,
                Fate.NOT_FETCHED,
                steps,
                tuple(mentions),
                broken,
                _scope_refusal(crawl.topic, spelling, steps[-1].depth + 1 if steps else 0),
                aliases=named,
            )
    raise ConfigurationError(_unknown(url, pages.index.tolist()))


def _spellings(url: str) -> list[str]:
    """The URL as typed, then as the crawl would have written it."""
    typed = url.strip()
    tried = [typed, normalise(typed)]
    if "://" not in typed:
        tried += [normalise(f"https://{typed}"), normalise(f"http://{typed}")]
    return list(dict.fromkeys(spelling for spelling in tried if spelling))


def _path(
    crawl: CrawlFolder, tables: Path, pages: pd.DataFrame, url: str
) -> tuple[tuple[Step, ...], str]:
    """The steps from the seed to ``url``, and why they begin at no seed if they do not."""
    chain, broken = [url], ""
    while isinstance(parent := pages.at[chain[-1], "parent"], str):
        if parent in chain:
            broken = f"the chain of parents runs in a circle at {parent}"
        elif parent not in pages.index:
            broken = f"its parent {parent} has no row in pages.parquet"
        elif len(chain) == _MAX_STEPS:
            broken = f"the chain of parents is longer than {_MAX_STEPS} steps"
        if broken:
            break
        chain.append(parent)
    evidence, weights = read_evidence(tables, chain), _prior_weights(crawl)
    rows = pages.loc[chain].to_dict("index")
    steps = (_step(str(u), rows[u], evidence.get(u, {}), weights) for u in reversed(chain))
    return tuple(steps), broken


def _prior_weights(crawl: CrawlFolder) -> Mapping[str, float]:
    """What the crawl's link prior gives each feature; empty when it is not to be had."""
    training = crawl.topic.get("training")
    try:
        prior = load_prior(str(training["link_prior"])) if isinstance(training, dict) else None
    except (ConfigurationError, KeyError):
        prior = None
    return {} if prior is None else dict(zip(FEATURE_NAMES, prior.weights.tolist(), strict=True))


def _step(
    url: str,
    row: Mapping[Any, Any],
    evidence: Mapping[str, float],
    weights: Mapping[str, float],
) -> Step:
    # Another scorer's features have no weights of ours: the largest come first.
    told = {name: abs(value * weights.get(name, 1.0)) for name, value in evidence.items()}
    seed = not isinstance(row["parent"], str)
    return Step(
        url=url,
        title=_text(row["title"]),
        anchor=_text(row["anchor"]),
        score=None if seed else _number(row["score"]),
        evidence=() if seed else tuple(sorted(evidence.items(), key=lambda item: -told[item[0]])),
        outcome=str(row["outcome"]),
        failure=_text(row["failure"]),
        status=int(_number(row["status"]) or 0),
        relevance=_number(row["relevance"]),
        on_topic=bool(row["on_topic"]),
        training=bool(row["training"]),
        depth=int(_number(row["depth"]) or 0),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """None for null, which pandas hands out as NaN."""
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def _mentions(tables: Path, url: str) -> list[Mention]:
    mentions = [
        Mention(row["source"], _text(row["anchor"]), _number(row["score"]))
        for row in read_links_to(tables, url)
    ]
    return sorted(mentions, key=lambda m: -1.0 if m.score is None else m.score, reverse=True)


def _scope_refusal(topic: Mapping[str, Any], url: str, depth: int) -> str:
    """Why the scope kept in the settings refuses ``url``; empty when it does not."""
    scope = described_scope(topic)
    return "" if scope is None else ScopeFilter(scope).refuses(url, depth) or ""


def _unknown(url: str, known: Sequence[str]) -> str:
    near = _near(url, known)
    said = f"{url}: this crawl neither fetched it nor found a link to it"
    return f"{said}; near to it are\n  " + "\n  ".join(near) if near else said


def _near(url: str, known: Sequence[str]) -> list[str]:
    """URLs that hold what was typed, then those of its host that look alike."""
    needle = url.strip().partition("://")[2] or url.strip()
    needle = needle.rstrip("/").casefold()
    holding = [other for other in known if needle and needle in other.casefold()]
    host = needle.partition("/")[0]
    same_host = [other for other in known if f"//{host}" in other.casefold()]
    alike = difflib.get_close_matches(
        url, (same_host or known)[:_MAX_COMPARED], n=_MAX_NEAR, cutoff=0.6
    )
    return list(dict.fromkeys([*sorted(holding, key=len)[:_MAX_NEAR], *alike]))[:_MAX_NEAR]
