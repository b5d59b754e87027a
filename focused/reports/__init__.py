"""What came of a crawl: figures, pictures, explanations, comparisons.

Two ways lead through it. A crawl's folder: :mod:`crawl_folder` reads it,
:mod:`metrics` and :mod:`reliability` are pure functions of its pages, :mod:`report`
and :mod:`why` tell what they say. A comparison: :mod:`examination` plans trials and has
:mod:`simulation` (or real crawls) make them; :mod:`findings` says what follows
from the runs.

Reads a crawl's folder (``pages.parquet``, ``links.parquet``,
``settings.json``, ``stats.json``) and changes nothing in it but
``report.json``, ``harvest.png`` and ``reliability.png``. Labels, where a recorded web has them,
come in here as plain arguments, after the crawl: nothing that guides a crawl
imports this package.
"""
