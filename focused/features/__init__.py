"""The features that come with the crawler, a module each: when they are on, and their wiring.

The objects ``feature`` are entry points of the group ``focused.features``. They are imported for
every crawl, so each imports what it wires in ``connect``. :mod:`focused.crawl.features` describes
the seams.
"""
