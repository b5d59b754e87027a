"""Calibrates relevances for the pages of a crawl.

The classifier is calibrated on samples, of which few are near the topic. A crawl fetches mostly
pages that are: on them the classifier is too sure of itself, in both directions. Tempering
(Guo, Pleiss, Sun, Weinberger 2017, "On calibration of modern neural networks") divides log-odds by
a temperature; here around a pivot below a half, because pages of doubtful relevance are mostly off
topic.

The tempered relevance is what a crawl stores and shows. The untempered one guides the crawl: it
separates pages more, and crawls by tempered relevances harvest less.
"""

from __future__ import annotations

import math

from focused.classifier.calibration import logit

TEMPERATURE = 1.6
PIVOT_LOG_ODDS = -1.5
"""Of least log loss on crawls of 28 topics on four webs, a quarter of the weight each. Constants of
three webs calibrate the fourth, too: docs/explanation/classifier.md, "Calibration in a crawl"."""


def temper(log_odds: float) -> float:
    """Return log-odds of being on topic for a page of a crawl; strictly increasing."""
    return PIVOT_LOG_ODDS + (log_odds - PIVOT_LOG_ODDS) / TEMPERATURE


def temper_relevance(relevance: float) -> float:
    """Return the tempered relevance of one in (0, 1)."""
    return 1.0 / (1.0 + math.exp(-temper(logit(relevance))))
