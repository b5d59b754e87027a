"""A topic as it is examined: with what guides its live crawl."""

from __future__ import annotations

from dataclasses import dataclass

from focused.learning.protocols import LinkScorer, TopicJudge
from focused.topic import Topic


@dataclass(frozen=True, slots=True)
class Candidate:
    """``sample_urls`` trained the judge; ``digest`` changes with whatever guides the crawl."""

    topic: Topic
    judge: TopicJudge
    apprentice: LinkScorer
    sample_urls: frozenset[str]
    digest: str = ""
