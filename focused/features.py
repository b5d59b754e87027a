"""The features that come with the crawler: when they are on, and the modules that wire them.

The objects are entry points of the group ``focused.features``. This module is imported for every
crawl; what wires a feature is imported when its topic switches it on. :mod:`focused.crawl.features`
describes the seams.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from focused.installed_features import Feature

if TYPE_CHECKING:
    from focused.crawl.features import CrawlCore, FeatureParts


def _connect_from(module: str) -> Callable[[CrawlCore], FeatureParts]:
    """Return ``connect`` of a module, which is imported when a topic switches its feature on."""

    def connect(core: CrawlCore) -> FeatureParts:
        parts: FeatureParts = import_module(module).connect(core)
        return parts

    return connect


def _connect_documents(core: CrawlCore) -> FeatureParts:
    """Let PDFs, office files and the like be pages."""
    from focused.crawl.features import FeatureParts
    from focused.documents.convert import DocumentConverter

    core.converters.append(DocumentConverter(core.topic.scope.documents))
    return FeatureParts()


documents = Feature(lambda topic: bool(topic.scope.documents), _connect_documents)
"""Documents as pages, of the formats in ``scope.documents``."""

javascript = Feature(
    lambda topic: topic.scope.javascript != "ignore",
    _connect_from("focused.crawl.javascript"),
    counts={
        "javascript/EVENT": "Pages that need JavaScript, by event: "
        "docs/reference/crawl-folder.md#javascript."
    },
    tables={
        "javascript_hosts": "Hosts with pages that show nothing without JavaScript, at the "
        "crawl's end. `stats.json` lists at most 100, with the number of such pages."
    },
)
"""Pages that need JavaScript: count them, or let a driver render them."""

revisits = Feature(
    lambda topic: topic.revisit.continuous,
    _connect_from("focused.crawl.revisits.continuous"),
    counts={
        "revisits/RESULT": "Pages visited again, by result: docs/how-to/freshness.md#results.",
        "missing_pages_requested": "Requests for pages that cannot exist, to recognise soft 404s.",
    },
    downloads="revisits",
)
"""Continuous crawls, which visit their pages again."""

search_forms = Feature(
    lambda topic: bool(topic.deep_web.hosts), _connect_from("focused.crawl.deep_web")
)
"""Queries by the search forms of the hosts that the topic names."""

spam = Feature(
    lambda topic: topic.scope.spam != "ignore",
    _connect_from("focused.crawl.spam_filter"),
    counts={"spam": "Fetched pages that are probably spam."},
)
"""Web spam: probable spam neither guides the crawl nor counts as harvest."""
