"""What changed from one model to the next, as Markdown for terminal and file."""

from __future__ import annotations

from datetime import UTC, datetime

from focused.learning.succession import Finding, Record, Succession, WordChanges

_WORDS_TOLD = 15
_NEIGHBOURS_TOLD = 8


def render_succession(
    title: str, at: float, succession: Succession | None, words: WordChanges
) -> str:
    """One entry of the list of changes; ``at`` is in seconds since the epoch."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"## {title}, {when}"]
    if succession is None:
        parts.append("No page was held out: nothing tells which model is better.")
    else:
        parts += [_verdict(succession), _figures(succession), _neighbours(succession)]
    parts.append(_words(words))
    return "\n\n".join(part for part in parts if part)


def _verdict(one: Succession) -> str:
    interval = f"{one.gain:+.3f} in Brier score, 95% interval {one.low:+.3f} to {one.high:+.3f}"
    pages = f"{one.pages} labelled pages that taught neither model"
    said = {
        Finding.BETTER: f"The new model is better on {pages} ({interval})",
        Finding.WORSE: f"The old model is better on {pages} ({interval})",
        Finding.ALIKE: f"Both models say the same of {pages}",
        Finding.TOO_FEW: f"Only {pages} are there ({interval}): too few to tell",
    }[one.finding]
    told = one.finding in (Finding.BETTER, Finding.WORSE) and not one.is_sure
    return said + ("; that may be chance." if told else ".")


def _figures(one: Succession) -> str:
    lines = ["| | old | new |", "|---|---|---|"]
    for name, old, new in zip(_NAMES, _row(one.old), _row(one.new), strict=True):
        lines.append(f"| {name} | {old} | {new} |")
    return "\n".join(lines)


_NAMES = ("judged right", "false alarms", "misses", "precision", "recall", "Brier score")


def _row(one: Record) -> tuple[str, ...]:
    counts = (str(one.right), str(one.false_alarms), str(one.misses))
    return (*counts, _share(one.precision), _share(one.recall), f"{one.brier:.3f}")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _neighbours(one: Succession) -> str:
    if not one.neighbours:
        return ""
    told = one.neighbours[:_NEIGHBOURS_TOLD]
    lines = ["| mistaken for the topic, nearest to | old | new |", "|---|---|---|"]
    lines += [f"| {name or 'no category'} | {old} | {new} |" for name, old, new in told]
    return "\n".join(lines)


def _words(words: WordChanges) -> str:
    gained, lost = (", ".join(each[:_WORDS_TOLD]) for each in (words.gained, words.lost))
    lines = [f"Words gained: {gained}." if gained else "", f"Words lost: {lost}." if lost else ""]
    return "\n".join(line for line in lines if line) or "The weightiest words are the same."
