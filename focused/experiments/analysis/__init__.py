"""What follows from the runs of an examination: statistics, tables, pictures, a report.

Everything here is a pure function of the comparison's JSON document (one
mapping per run, see :mod:`~focused.experiments.analysis.comparison_runs`), so that a report
can be made again from the file alone, on another machine.

The way of a document: :mod:`runs` reads and checks it; :mod:`grid` lays the runs
out as starts × policies, so that policies are only ever compared from the same
start; :mod:`inference` draws topics and starts again (the bootstrap);
:mod:`summary`, :mod:`pairing` and :mod:`ranks` say what each policy brought, how
two differ and which can be told apart, :mod:`catching_up` who needs how many pages
for breadth-first's harvest, :mod:`calibration` whether scores were right;
:mod:`conclusions` puts them together. :mod:`tables`, :mod:`closer_tables`,
:mod:`plots`, :mod:`headline` and :mod:`html` show them;
:mod:`looks` gives each policy its colour; :mod:`export` writes a folder.

Invariants: a mean over one start has no interval; what was not measured is None
and never 0; the order of the runs changes no figure; oracles are bounds and never
contenders.
"""
