"""How many examples a property test tries under the Hypothesis profile of this run."""

from hypothesis import settings

_FULL = 100  # Hypothesis's own number, which the profile `thorough` keeps


def examples(full: int) -> int:
    """Scale a number of examples: all in the profile `thorough`, half in `quick`."""
    return max(1, full * settings().max_examples // _FULL)
