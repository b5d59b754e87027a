"""Webs kept on disk: built, imported, looked up, replayed over loopback.

A recorded web is a folder: one or more ``*.warc.gz`` files (the pages), an
index made from them (rebuilt when missing), ``labels.tsv`` (``url``,
``category``: what the ground truth knows, a URL may stand in several lines) and
``web.json`` (name, builder, counts). Labels never leave this package towards
what guides a crawl: they are read by reports and comparisons only.
"""
