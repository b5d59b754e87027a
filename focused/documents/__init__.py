"""Documents as pages: PDF, office files, EPUB, XML articles, Markdown and plain text.

:func:`~focused.documents.convert.to_html` converts a response that holds a document into one that
holds HTML with the document's text, structure, links and metadata. Everything that reads pages
reads this HTML: links, classification, deduplication, main text, changes. The archive keeps the
document itself.

Conversion may take seconds or much memory for hostile documents, and PDFs are parsed by a library
in C++: run it in a :mod:`focused.parser_process`. Nothing is fetched, written or executed; entities
of XML are never expanded.
"""
