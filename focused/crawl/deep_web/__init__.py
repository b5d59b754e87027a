"""The deep web: pages that only a search form leads to.

:class:`~focused.crawl.deep_web.form_prober.FormProber` finds the search form of a host that the
topic names, sends one-word queries by it, and learns which words bring new relevant pages
(:mod:`~focused.crawl.deep_web.query_selection`). Queries and result pages are links of the
frontier: robots.txt, delays and budgets apply. Only forms with the method GET are used.
"""
