"""Which answers are read for pages, and what is left of them: by the judge in office, always.

A page may have been read ahead of its turn (:mod:`focused.crawl.reading`), by a judge that
another has followed since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from focused.crawl.reading import Parse, Reader, Reading
from focused.crawl.stages import Stages
from focused.frontier.queued import QueuedLink
from focused.learning.judge_in_office import JudgeInOffice
from focused.learning.protocols import LinkScorer, TakesTold
from focused.topic import Topic
from focused.web.decode import content_type_of
from focused.web.feeds import is_feed
from focused.web.page import Failed, FailureKind, Fetched
from focused.web.parse import parse_page
from focused.web.robots import product_token
from focused.web.warc import CaptureWriter

_NOT_PARSED = frozenset(
    {FailureKind.UNDIGESTED, FailureKind.PARSE_TIMEOUT, FailureKind.PARSE_MEMORY}
)
"""Failures of pages that may ask not to be archived: nobody could read whether they do."""

MAX_NESTED_FEEDS = 5  # an index, its sitemaps, and the redirects to them


class Intake:
    """Makes readings of answers, for one topic; changes nothing of the crawl's."""

    def __init__(
        self,
        topic: Topic,
        office: JudgeInOffice,
        scorer: LinkScorer,
        stages: Stages,
        parse: Parse | None,
        *,
        capture_writer: Callable[[], CaptureWriter | None],
    ) -> None:
        """``parse`` stands in for the parser, unless None.

        ``capture_writer`` gives what makes the WARC records now; None: there is no WARC.
        """
        self._scope = topic.scope
        self._keeps_noindex = topic.politeness.noindex == "keep"
        self._office = office
        self._stages = stages
        self._parse = parse or partial(
            parse_page,
            max_links=topic.scope.max_links_per_page,
            robot=product_token(topic.politeness.user_agent),
        )
        self._takes_told = isinstance(scorer, TakesTold)
        self._capture_writer = capture_writer
        self._reader: Reader | None = None

    def reader(self) -> Reader:
        """Read pages as this crawl does, by the judge that is in office now."""
        office, reader, writer = self._office, self._reader, self._capture_writer()
        if (
            reader is None
            or reader.judge is not office.judge_now
            or reader.capture_writer != writer
        ):
            self._reader = reader = Reader(
                self._scope,
                office.judge_now,
                office.name,
                self._parse,
                self._stages.clock,
                takes_told=self._takes_told,
                capture_writer=writer,
            )
        return reader

    def refusal(self, link: QueuedLink | None, fetched: Fetched) -> Failed | None:
        """Why what ``link`` brought is not read at all; None: it is.

        Without a ``link`` it is not of the frontier, and no seed's feed.
        """
        scope = self._scope
        if len(fetched.body) > scope.max_page_bytes:
            return fetched.failed(FailureKind.TOO_LARGE)
        media_type = content_type_of(fetched.headers)
        # Feeds and sitemaps are welcome as seeds, and as what those point to.
        if (
            media_type
            and media_type not in scope.content_types
            and (link is None or not is_seeds_feed(link, fetched))
        ):
            return fetched.failed(FailureKind.WRONG_TYPE, media_type)
        return None

    def read(
        self, link: QueuedLink, fetched: Fetched, ahead: Reading | Failed | None
    ) -> Reading | Failed:
        """The page that ``link`` brought; Failed where there is none, or none that is wanted.

        ``ahead`` is what was read before, None: it is read here.
        """
        refused = self.refusal(link, fetched)
        if refused is not None:
            return refused
        read = self._in_office(ahead) if isinstance(ahead, Reading) else ahead
        if read is None:
            read = self.reader().read(fetched)
        if isinstance(read, Failed):
            if read.kind in _NOT_PARSED:
                return read
            return fetched.failed(read.kind, read.detail)
        for stage, seconds in read.seconds.items():
            self._stages.add(stage, seconds)
        language = read.page.language
        if self._scope.languages and language and language not in self._scope.languages:
            failed = fetched.failed(FailureKind.WRONG_LANGUAGE, language)
            left_out = read.page.left_out_at(fetched.came_at) and not self._keeps_noindex
            return replace(failed, exchange=None) if left_out else failed
        return read

    def _in_office(self, reading: Reading) -> Reading:
        """The reading, judged by the judge in office: another may have judged ahead of the turn."""
        if reading.judge == self._office.name:
            return reading
        judgement = self._office.judge(reading.page)
        return replace(reading, judgement=judgement, judge=self._office.name, told=None)


def is_seeds_feed(link: QueuedLink, fetched: Fetched) -> bool:
    """Whether this is a seed's feed: sitemaps that lead to ever more sitemaps end."""
    return link.depth == 0 and link.hops < MAX_NESTED_FEEDS and is_feed(fetched)
