"""Train a link classifier on a preliminary crawl, then crawl again with it.

Chakrabarti, Punera, Subramanyam: Accelerated Focused Crawling through Online Relevance Feedback,
WWW 2002. A best-first crawl provides links (u, v) with the relevance of each fetched v; their
apprentice, naive Bayes on the words around the link, learns from them and orders a second crawl
from the same seeds.

Differences: words are separated by anchor, context and URL instead of offsets in the tag tree. A
logistic regression combines the log-odds with the parent's relevance, because naive Bayes alone is
overconfident. Only the first five links to a page are used, which bounds the cost and the weight of
menus.

Compare with care: the first crawl spends a whole budget that the figures do not count. Live crawls
cannot use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.errors import ConfigurationError
from focused.link_scoring.link_features import parent_log_odds
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs, best_first
from focused.web.page import Link
from focused_lab.orderings.link_text_classifier import LinkTextClassifier, link_matrix

LINKS_PER_TARGET = 5


def make_policy(inputs: PolicyInputs) -> Policy:
    """Run the preliminary crawl and create the policy.

    Raises ConfigurationError in a live crawl.
    """
    if inputs.preliminary_crawl is None:
        raise ConfigurationError(
            "the policy 'two-phase' crawls twice from the same seeds, which needs a recorded "
            "web: use it in 'focused compare', or another policy for a live crawl"
        )
    learner = train_link_classifier(inputs.preliminary_crawl(best_first(inputs)))
    if learner is None:  # the preliminary crawl met one class only
        return Policy("two-phase", best_first(inputs).scorer)

    def predictions(page_context: PageContext, links: Sequence[Link]) -> NDArray[np.float64]:
        return learner.predict(link_matrix(links), parent_log_odds(page_context.classification))

    return Policy("two-phase", FunctionScorer(predictions))


def train_link_classifier(settled: Sequence[SettledFetch]) -> LinkTextClassifier | None:
    """Train on the links with classified targets; None when there is too little to learn from."""
    relevance = relevance_by_url(settled)
    links: list[Link] = []
    parents: list[float] = []
    taken: Counter[str] = Counter()
    for page in settled:
        if page.classification is None:
            continue
        for url, found in page.scored.items():
            if url in relevance and taken[url] < LINKS_PER_TARGET:
                taken[url] += 1
                links.append(found.link)
                parents.append(parent_log_odds(page.classification))
    return LinkTextClassifier.fit(
        link_matrix(links),
        np.array([relevance[link.url] for link in links]),
        [link.url for link in links],
        np.array(parents),
    )


def relevance_by_url(settled: Sequence[SettledFetch]) -> Mapping[str, float]:
    """The relevance of each URL's page, redirects followed."""
    found: dict[str, float] = {}
    for each in reversed(settled):  # a redirect's target is settled after it
        if each.outcome == "fetched" and each.classification is not None:
            found[each.link.url] = each.classification.guiding_relevance
        if each.link.hops and each.link.parent is not None and each.link.url in found:
            found[each.link.parent] = found[each.link.url]
    return found
