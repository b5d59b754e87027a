"""Reports on one crawl, and comparisons of finished crawls.

:mod:`crawl_folder` reads the crawl's output folder. :mod:`metrics` and :mod:`reliability` are pure
functions of its pages. :mod:`crawl_report` and :mod:`why` build the report and the explanation of a
URL; the ``*_output`` modules print them. Reports never modify the crawl. Ground-truth labels are
arguments, so no label reaches what guides a crawl.
"""
