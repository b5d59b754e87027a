"""Write the archive's rows: one per settled link, numbered in that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from focused.archive.archive import Archive, LinkRow, PageRow
from focused.classifier.topic_classifier import SwappableClassifier
from focused.crawl.classified_page import ClassifiedPage, PageColumn
from focused.crawl.crawl_stats import Counters
from focused.crawl.dedup.duplicates import DuplicateKind
from focused.crawl.enqueue import archive_links
from focused.crawl.policy import Policy
from focused.frontier.queued_link import QueuedLink
from focused.web.decoding import media_type_of
from focused.web.page import Failed, Redirected

_MAX_TITLE_CHARS = 300


class ArchiveWriter:
    """Writes one archive row per settled link, numbered in that order; the caller commits.

    Scores of links are calibrated for the rows; in the frontier they stay as they are, because
    priorities follow from them.
    """

    def __init__(
        self, archive: Archive, counters: Counters, classifier: SwappableClassifier, policy: Policy
    ) -> None:
        self._archive = archive
        self._counters = counters
        self._classifier = classifier
        self._policy = policy
        self._feature_names = tuple(policy.scorer.feature_names)
        self.columns: list[PageColumn] = []
        """Those of the features that are on."""

    def with_calibrated_score(self, link: QueuedLink) -> QueuedLink:
        """Return the link with its score as it is stored and shown."""
        if not link.features:  # the score of a seed was not predicted
            return link
        (score,) = self._policy.calibrate_scores([link.score])
        return structs.replace(link, score=score)

    def fetched(
        self,
        link: QueuedLink,
        classified: ClassifiedPage,
        now: float,
        *,
        training: bool,
    ) -> None:
        """Write a page's or feed's row, its links and its WARC records."""
        row = self._row(
            link,
            now,
            duplicate_of=classified.duplicate_of,
            duplicate_kind=None if classified.content is None else classified.content.kind,
            training=training,
            **self._page_fields(link.url, classified),
        )
        self._archive.append(row, self._link_rows(classified), classified.kept_record)

    def replaced(self, number: int, later: str) -> None:
        """Make the row of a harvested page that of a duplicate of a ``later`` page."""
        row = self._archive.row(number)
        if row is None or row.duplicate_of is not None:
            return
        self._archive.amend(
            structs.replace(
                row, on_topic=False, duplicate_of=later, duplicate_kind=DuplicateKind.NEAR
            )
        )
        self._counters.duplicates += 1
        self._counters.on_topic -= row.on_topic

    def reinstated(self, number: int) -> bool:
        """Make the row of a duplicate on topic that of a harvested page; False if it is none."""
        row = self._archive.row(number)
        if row is None or row.duplicate_of is None:
            return False
        self._archive.amend(
            structs.replace(row, on_topic=True, duplicate_of=None, duplicate_kind=None)
        )
        self._counters.duplicates -= 1
        self._counters.on_topic += 1
        return True

    def new_version(self, row: PageRow, classified: ClassifiedPage) -> PageRow:
        """Replace the row of a page, its links, and write the WARC records of the new version."""
        fields = self._page_fields(row.url, classified)
        if row.duplicate_of is not None and not classified.feed:
            fields["duplicate_of"] = classified.duplicate_of
            fields["duplicate_kind"] = classified.content and classified.content.kind
            if classified.duplicate_of is None:
                self._counters.duplicates -= 1
                self._counters.on_topic += classified.counts
        row = structs.replace(row, model=self._classifier.name, **fields)
        return self._archive.replace(row, self._link_rows(classified), classified.kept_record)

    def redirected(
        self, link: QueuedLink, outcome: Redirected, target: str, now: float, *, in_warc: bool
    ) -> None:
        """Write the row of a redirect to ``target``."""
        row = self._row(link, now, outcome="redirected", status=outcome.status, points_to=target)
        self._archive.append(row, (), self._archive.capture(outcome, now) if in_warc else None)

    def failed(self, link: QueuedLink, failed: Failed, now: float, *, in_warc: bool) -> None:
        """Write the row of a link that failed for good."""
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
        """Write the WARC record of a failed try; it has no row."""
        self._archive.record(failed, now)

    def _link_rows(self, classified: ClassifiedPage) -> Sequence[LinkRow]:
        if not self._archive.stores_links:
            return ()
        scored = classified.scored
        with_features = [url for url, found in scored.items() if found.features]
        scores = {url: found.score for url, found in scored.items()}
        calibrated = self._policy.calibrate_scores([scores[url] for url in with_features])
        scores.update(zip(with_features, calibrated, strict=True))
        return archive_links(classified.page, scores)

    def _row(self, link: QueuedLink, now: float, *, outcome: str, **fields: Any) -> PageRow:
        seq = self._counters.settled
        self._counters.settled += 1
        return PageRow(
            seq=seq,
            url=link.url,
            host=link.host,
            outcome=outcome,
            score=link.score,
            features=dict(zip(self._feature_names, link.features, strict=False)),
            depth=link.depth,
            parent=link.parent,
            anchor=link.anchor,
            found_at=link.found_at,
            fetched_at=now,
            policy=self._policy.name,
            model=self._classifier.name,
            **fields,
        )

    def _page_fields(self, url: str, classified: ClassifiedPage) -> dict[str, Any]:
        """Return the columns of a page or feed that each of its versions has."""
        page, response = classified.page, classified.response
        return {
            "outcome": classified.outcome,
            "status": response.status,
            "title": "" if classified.is_noindex else page.title[:_MAX_TITLE_CHARS],
            "relevance": None if classified.feed else classified.classification.relevance,
            "on_topic": classified.counts,
            "language": page.language,
            "content_type": media_type_of(response.headers),
            "bytes": len(response.body),
            "points_to": None if page.canonical == url else page.canonical,
            "elapsed_s": response.elapsed_s,
            "added": {each.name: each.value(classified) for each in self.columns},
        }
