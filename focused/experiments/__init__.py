"""Experiments: run policies on the same webs from the same seeds, and evaluate them by labels.

:mod:`experiment_plan` lists the trials, :mod:`runner` simulates each one, :mod:`ground_truth`
evaluates it, and :mod:`comparison_files` logs it. :mod:`analysis` computes statistics and the
report from the logged runs. Nothing of the crawler imports this package: labels reach no policy but
the oracles, which are defined here.
"""
