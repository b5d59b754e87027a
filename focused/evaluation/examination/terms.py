"""What all runs of a comparison have in common, and how the command line says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from focused.errors import ConfigurationError
from focused.evaluation.examination.oracles import ORACLES
from focused.policies import policy_named


@dataclass(frozen=True, slots=True)
class Terms:
    """What all runs have in common.

    ``budget`` is in pages that count, or ``x1.5``: so many times the topic's
    on-topic pages. ``latency_s`` is the mean over URLs. ``delay_s`` is the
    delay of real crawls, None for simulated ones.
    """

    budget: str = "1000"
    repeat: int = 1
    latency_s: float = 0.2
    seed: int = 0
    delay_s: float | None = None

    @property
    def live(self) -> bool:
        """Whether the runs are real crawls."""
        return self.delay_s is not None


def parse_budget(text: str) -> int | float:
    """Pages as an int, or the factor of ``x1.5`` as a float. Raises ConfigurationError."""
    factor = text.startswith("x")
    try:
        value = float(text[1:]) if factor else int(text)
        if 0 < value < float("inf"):
            return value
    except ValueError:
        pass
    raise ConfigurationError(
        f"--budget: {text!r} is neither a number of pages from 1 on nor a multiple of the "
        "topic's pages such as 'x1'"
    )


def pages_of(budget: str, relevant: int) -> int:
    """A budget in pages for a topic with ``relevant`` pages, at least 1."""
    value = parse_budget(budget)
    return value if isinstance(value, int) else max(1, round(value * relevant))


def parse_host_cap(text: str) -> int | None:
    """Pages per host, or None for ``none``. Raises ConfigurationError."""
    if text == "none":
        return None
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise ConfigurationError(f"--host-cap: {text!r} is neither 'none' nor a number from 1 on")


def check_policies(names: Sequence[str], *, live: bool = False) -> None:
    """Raise ConfigurationError for a policy that is unknown, or an oracle in a live crawl."""
    for name in names:
        if name not in ORACLES:
            policy_named(name)
        elif live:
            raise ConfigurationError(
                f"--policies: {name} sees the labels, which no real crawl can: leave it out, "
                "or leave --live out"
            )
