"""The examination: policies crawl the same webs from the same starts, judged by labels alone.

A plan lists trials; the examiner simulates each and the referee judges it;
the journal keeps what was done. What follows from the runs is told in
:mod:`focused.experiments.analysis`. Labels reach no policy but the oracles,
which live here for that reason.
"""
