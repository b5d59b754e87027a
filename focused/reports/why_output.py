"""Print the explanation of a URL, step by step from the seed to the page."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from focused.errors import escape_control_characters
from focused.reports.formatting import odds_in_words, single_line
from focused.reports.reliability import MIN_BIN_PAGES, bin_edges, bin_indices
from focused.reports.why import Explanation, InLink, PathStep, UrlOutcome

_ALIASES = {
    "redirect": "Redirects to",
    "canonical": "Canonical URL",
    "canonical-of": "Canonical URL of",
}
_MAX_FEATURES, _MAX_MENTIONS = 8, 10


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print each step with anchor, score in words, features and classification."""
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
    score = f"its best score was {best:.2f}"
    if not explanation.scores_only_rank:
        score += f" ({odds_in_words(best)})"
    return f"{score}; better ones came first, or its host's page limit was reached."


def _best_score(in_links: tuple[InLink, ...]) -> float | None:
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
    return f"score {score:.2f}: {odds_in_words(score)}"


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
    words = {0: "none", known.pages: "all"}  # of thirty pages "all but certain" would be too much
    return [f"{text}: {words.get(good) or f'about {odds_in_words(known.on_topic)}'}"]


def _format_outcome(step: PathStep) -> str:
    if step.outcome == "failed":
        status = f", HTTP {step.status}" if step.status else ""
        return f"failed: {single_line(step.failure) or 'unknown'}{status}"
    if step.outcome == "redirected":
        return f"redirected, HTTP {step.status}"
    if step.outcome == "feed":
        return "a feed or sitemap: used for its links, not classified"
    title = f'"{single_line(step.title, 80)}" ' if single_line(step.title) else ""
    sample = ", a training sample" if step.training else ""
    if step.relevance is None:
        return f"{title}fetched, not classified{sample}"
    if step.outcome == "noindex":
        return f"judged {step.relevance:.2f}{sample}, dropped (noindex)"
    verdict = "on topic" if step.on_topic else "off topic"
    return f"{title}judged {step.relevance:.2f}: {verdict}{sample}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _print_line(console: Console, line: str, style: str = "") -> None:
    """Print one line without markup, highlighting or wrapping."""
    console.print(Text(escape_control_characters(line), style=style), soft_wrap=True)
