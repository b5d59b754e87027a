"""Full-text search over the pages of a crawl, by an embedded engine (tantivy).

:mod:`~focused.search.index` builds and updates the index, :mod:`~focused.search.query` searches it.
For search servers, ``server_update`` sends what a server lacks (``server_documents``) through the
clients in ``search_servers``.
"""
