"""Full-text search over the pages of a crawl, by an embedded engine (tantivy).

:mod:`~focused.search.index` builds and updates the index, :mod:`~focused.search.query` searches it.
"""
