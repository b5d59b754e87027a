"""Prints an explanation as a story from the seed to the page."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from focused.errors import visible
from focused.evaluation.reliability import FEW, bin_edges, places
from focused.evaluation.why import Explanation, Fate, Mention, Step
from focused.evaluation.wording import odds, plain

_ALIAS = {
    "led": "It led to",
    "names": "It names as its own URL",
    "named": "It is named as its own URL by",
}
_MAX_FEATURES, _MAX_MENTIONS = 8, 10


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print the path, each step with anchor, score in words, features and verdict."""
    for line in _headline(explanation):
        _say(console, line, style="bold")
    if explanation.fate is Fate.NOT_FETCHED:
        best = _best(explanation.mentions)
        for line in _meaning(best, explanation):
            _say(console, line)
    for alias in explanation.aliases:
        _say(console, f"{_ALIAS[alias.says]} {plain(alias.url)}: {plain(alias.outcome)}")
    if explanation.broken:
        _say(console, f"The path is not whole: {explanation.broken}.")
    for number, step in enumerate(explanation.steps):
        first = number == 0 and not explanation.broken
        _print_step(step, explanation, console, seed=first)
    for mention in explanation.mentions[:_MAX_MENTIONS]:
        _say(console, f"  linked from {plain(mention.source)}")
        _say(console, f"    {_anchor(mention.anchor)}, {_score(mention.score, explanation)}")
    hidden = len(explanation.mentions) - _MAX_MENTIONS
    if hidden > 0:
        _say(console, f"  and {hidden:,} more links")


def _headline(explanation: Explanation) -> list[str]:
    url = plain(explanation.url)
    if explanation.fate is not Fate.NOT_FETCHED:
        steps = len(explanation.steps) - 1
        return [f"{url}", f"{explanation.fate}, {steps} {_plural('step', steps)} from its seed:"]
    links = len(explanation.mentions)
    if not links:
        return [url, "not fetched, and no link to it is kept."]
    return [
        f"{url}",
        f"not fetched, though found in {links:,} {_plural('link', links)}: {_reason(explanation)}",
    ]


def _reason(explanation: Explanation) -> str:
    if explanation.out_of_scope:
        return f"out of scope ({explanation.out_of_scope})."
    best = _best(explanation.mentions)
    if best is None:
        return "no link to it was scored."
    score = f"its best score was {best:.2f}"
    if not explanation.ordered_only:
        score += f" ({odds(best)})"
    return f"{score}; better ones came first, or its host had its fill."


def _best(mentions: tuple[Mention, ...]) -> float | None:
    return max((m.score for m in mentions if m.score is not None), default=None)


def _print_step(step: Step, explanation: Explanation, console: Console, *, seed: bool) -> None:
    _say(console, f"{'seed' if seed else ' ->'} {plain(step.url)}", style="cyan")
    if not seed:
        _say(console, f"       {_anchor(step.anchor)}, {_score(step.score, explanation)}")
        for line in _meaning(None if step.depth == 0 else step.score, explanation):
            _say(console, f"       {line}")
        for name, value in step.evidence[:_MAX_FEATURES]:
            _say(console, f"         {value:+8.3f}  {plain(name)}")
        hidden = len(step.evidence) - _MAX_FEATURES
        if hidden > 0:
            _say(console, f"                   and {hidden} weaker {_plural('feature', hidden)}")
    _say(console, f"       {_verdict(step)}")


def _anchor(anchor: str) -> str:
    return f'anchor "{plain(anchor, 100)}"' if plain(anchor) else "no anchor"


def _score(score: float | None, explanation: Explanation) -> str:
    if score is None:
        return "not scored"
    if explanation.ordered_only:
        return f"score {score:.2f}, which orders links and is no probability"
    return f"score {score:.2f}: {odds(score)}"


def _meaning(score: float | None, explanation: Explanation) -> list[str]:
    """What came of this crawl's links with such a score: a line, or none where nothing tells."""
    if score is None or explanation.ordered_only:
        return []
    low, high = bin_edges(int(places([score])[0]))
    such = f"with a score of {low:.1f} to {high:.1f}"
    known = None if explanation.scores is None else explanation.scores.bin_of(score)
    if known is None:
        return [f"no page was fetched {such}: nothing tells what such a score means"]
    good = round(known.on_topic * known.pages)
    told = f"of {known.pages:,} {_plural('page', known.pages)} fetched {such}, {good:,}"
    told += " was judged on topic" if good == 1 else " were judged on topic"
    if known.pages < FEW:
        return [f"{told}: too few to tell what such a score means"]
    words = {0: "none", known.pages: "all"}  # of thirty pages none is "all but certain"
    return [f"{told}: {words.get(good) or f'about {odds(known.on_topic)}'}"]


def _verdict(step: Step) -> str:
    if step.outcome == "failed":
        status = f", HTTP {step.status}" if step.status else ""
        return f"failed: {plain(step.failure) or 'unknown'}{status}"
    if step.outcome == "redirected":
        return f"redirected, HTTP {step.status}"
    if step.outcome == "feed":
        return "a feed or sitemap: read for its links, never judged"
    title = f'"{plain(step.title, 80)}" ' if plain(step.title) else ""
    sample = ", a training sample" if step.training else ""
    if step.relevance is None:
        return f"{title}fetched, not judged{sample}"
    if step.outcome == "noindex":
        return f"judged {step.relevance:.2f}{sample}, and left out as it asks (noindex)"
    verdict = "on topic" if step.on_topic else "off topic"
    return f"{title}judged {step.relevance:.2f}: {verdict}{sample}"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _say(console: Console, line: str, style: str = "") -> None:
    """One line as it is: no markup, no guessing at highlights, no wrapping of URLs."""
    console.print(Text(visible(line), style=style), soft_wrap=True)
