"""The lab: experiments with the crawler, and what the literature proposes for its parts.

Experiments run policies on the same webs from the same seeds, and evaluate them by labels:
:mod:`experiment_plan` lists the trials, :mod:`runner` simulates each one, :mod:`ground_truth`
evaluates it, and :mod:`comparison_files` logs it. :mod:`analysis` computes statistics and the
report from the logged runs. :mod:`recorded_web` imports and replays recorded webs, :mod:`builders`
make some, :mod:`changing_web` lets their pages change; :mod:`orderings` and :mod:`revisit_policies`
are those of the literature.

The crawler imports nothing of this package. It finds commands, orderings, revisit policies and
recorded webs by entry points (``lab/pyproject.toml``). Labels reach no policy but the oracles.
"""
