"""Analysis of a comparison: statistics, tables, plots, the HTML report.

Everything is a pure function of the comparison's JSON document, so the report can be built again
from that file alone. :mod:`comparison_runs` validates the document and arranges its runs as starts
× policies; :mod:`inference` computes bootstrap intervals; :mod:`policy_summary`
and :mod:`paired_comparison` compute the statistics and :mod:`comparison_analysis` collects them;
the other modules present them.

Invariants: policies are only compared from the same start; a mean over one start has no interval;
unmeasured values are None, never 0; the order of the runs changes no figure; oracles are bounds and
never ranked.
"""
