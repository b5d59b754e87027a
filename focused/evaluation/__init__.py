"""What came of a crawl: figures, pictures, explanations, comparisons.

Reads a crawl's folder (``pages.parquet``, ``links.parquet``,
``settings.json``, ``stats.json``) and changes nothing in it but
``report.json`` and ``harvest.png``. Labels, where a recorded web has them,
come in here as plain arguments, after the crawl: nothing that guides a crawl
imports this package.
"""
