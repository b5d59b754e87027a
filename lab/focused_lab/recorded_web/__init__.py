"""Recorded webs on disk: import, look up, replay over loopback.

A recorded web is a folder with ``*.warc.gz`` files (the pages), an index of them (rebuilt if
missing), ``labels.tsv`` (``url``, ``category``: the ground truth; a URL may have several lines) and
``web.json`` (name, builder, counts). Only reports, comparisons and the sampling of directories
may read labels, never what guides a crawl.

The crawler uses them through :mod:`focused.recorded_web`, which ``crawler_access`` implements.
"""
