"""The archive's row of each settled link: numbered in the order of settling."""

from __future__ import annotations

from typing import Any

from focused.archive import Archive, PageRow
from focused.crawl.counters import Counters
from focused.crawl.discovery import link_rows
from focused.crawl.harvest import Harvest
from focused.crawl.policy import Policy
from focused.frontier.queued import QueuedLink
from focused.learning.judge_in_office import JudgeInOffice
from focused.web.decode import content_type_of
from focused.web.page import Failed, Fetched, Redirected

_MAX_TITLE_CHARS = 300


class PageRows:
    """Writes the rows; the caller commits."""

    def __init__(
        self, archive: Archive, counters: Counters, office: JudgeInOffice, policy: Policy
    ) -> None:
        self._archive = archive
        self._counters = counters
        self._office = office
        self._policy = policy.name
        self._feature_names = tuple(policy.scorer.feature_names)

    def fetched(
        self, link: QueuedLink, fetched: Fetched, harvest: Harvest, now: float, *, training: bool
    ) -> None:
        """A page or a feed came: its row, its links, and the answer where there is a WARC."""
        page, judgement = harvest.page, harvest.judgement
        row = self._row(
            link,
            now,
            outcome=harvest.outcome,
            status=fetched.status,
            title="" if harvest.left_out else page.title[:_MAX_TITLE_CHARS],
            relevance=None if harvest.feed else judgement.relevance,
            on_topic=harvest.counts,
            language=page.language,
            content_type=content_type_of(fetched.headers),
            bytes=len(fetched.body),
            duplicate_of=harvest.duplicate_of,
            duplicate_kind=None if harvest.content is None else harvest.content.kind,
            points_to=None if page.canonical == link.url else page.canonical,
            training=training,
            elapsed_s=fetched.elapsed_s,
        )
        links = link_rows(page, harvest.scored) if self._archive.keeps_links else ()
        self._archive.append(row, links, harvest.kept_record)

    def redirected(
        self, link: QueuedLink, outcome: Redirected, target: str, now: float, *, in_warc: bool
    ) -> None:
        """The link leads on to ``target``."""
        row = self._row(link, now, outcome="redirected", status=outcome.status, points_to=target)
        self._archive.append(row, (), self._archive.capture(outcome, now) if in_warc else None)

    def failed(self, link: QueuedLink, failed: Failed, now: float, *, in_warc: bool) -> None:
        """The link gave no page, and is not tried again."""
        row = self._row(
            link,
            now,
            outcome="failed",
            status=failed.status,
            failure=str(failed.kind),
            elapsed_s=failed.elapsed_s,
        )
        self._archive.append(row, (), self._archive.capture(failed, now) if in_warc else None)

    def retried(self, failed: Failed, now: float) -> None:
        """Keep the response to a request that is tried again; it has no row."""
        self._archive.record(failed, now)

    def _row(self, link: QueuedLink, now: float, *, outcome: str, **fields: Any) -> PageRow:
        seq = self._counters.settled
        self._counters.settled += 1
        return PageRow(
            seq=seq,
            url=link.url,
            host=link.host,
            outcome=outcome,
            score=link.score,
            evidence=dict(zip(self._feature_names, link.evidence, strict=False)),
            depth=link.depth,
            parent=link.parent,
            anchor=link.anchor,
            found_at=link.found_at,
            fetched_at=now,
            policy=self._policy,
            judge=self._office.name,
            **fields,
        )
