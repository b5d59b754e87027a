"""Web spam: which fetched pages only look relevant, and which sites they come from.

``spam_classifier`` measures signals of a page's text and turns them into evidence,
``spam_training`` fits that classifier on a topic's own samples beside spam made of them, and
``site_trust`` combines the evidence of a site's pages with that of the sites that link to it. The
result is the probability that a page is spam. ``site_novelty`` finds sites whose pages bring
nothing new.
"""
