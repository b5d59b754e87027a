"""Full-text search over the pages of a crawl, by tantivy or a search server.

:mod:`~focused.search.index` builds, updates and searches the index. For search servers,
``server_update`` sends what a server lacks through the clients in ``search_servers``. Both learn
from ``index_update`` what has changed since their last update.
"""
