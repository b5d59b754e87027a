"""A crawl as a corpus: documents with structure and metadata, in the formats that people train on.

:mod:`~focused.corpus.export` runs it: ``page_selection`` reads the crawl's tables and has the
conditions, ``stored_documents`` extracts the texts from the WARC in parser processes,
``page_records`` rates them, cuts them into chunks and makes the records, ``writers`` writes them
and ``data_card`` describes them. The extraction itself is :mod:`focused.web.html.document`.

Invariants: memory does not grow with texts; an interrupted export ends with the same bytes as
another; what pages say is inert in every format; the data card exists only beside complete files.
"""
