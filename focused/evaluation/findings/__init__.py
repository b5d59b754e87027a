"""What follows from the runs of an examination: statistics, tables, pictures, a report.

Everything here is a pure function of the runs as the comparison's JSON has
them (one mapping per run, see :mod:`focused.evaluation.findings.runs`), so that
a report can be made again from the file alone, on another machine.
"""
