"""A labelling session: which page is shown, what was answered, the estimates so far.

The last functions describe it as JSON, for the label page.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focused.archive.archive import PageRow
from focused.errors import LabelError, StateError
from focused.labelling.labelling_task import (
    FetchedPages,
    LabellingTask,
    find_labelling_task,
    read_fetched_pages,
    relevance_of,
)
from focused.labelling.page_renderer import RenderedPage
from focused.labelling.page_selection import (
    BoundedParser,
    PageSelector,
    PoolProgress,
    TrainingPool,
    build_training_pool,
    evaluation_queue,
    search_pages,
)
from focused.labels.label_file import (
    Label,
    LabelFile,
    LabelledPageStore,
    Reason,
    Role,
    Verdict,
    labelled_pages_path,
    role_of,
)
from focused.labels.precision_estimate import (
    ShareEstimate,
    Stratum,
    estimate_share,
    estimate_stratified_share,
    withheld_reason,
)

EVALUATION_EVERY = 3
"""One page in this many is drawn at random for the evaluation set."""


@dataclass(frozen=True, slots=True)
class ShownPage:
    """The page to label, why it is shown, and the model's relevance in [0, 1].

    The relevance of a page of the evaluation set must stay hidden until it is labelled: it would
    bias the answer. ``good_pages_needed`` counts the on-topic pages that are missing before active
    learning starts.
    """

    page: PageRow
    role: Role
    reason: Reason
    relevance: float
    good_pages_needed: int = 0


@dataclass(frozen=True, slots=True)
class LabellingProgress:
    """Counts of labels, and estimated shares of the crawl's pages.

    ``precision`` is the share of good pages among those called on topic, ``harvest`` among all
    fetched, duplicates counted as not good. Both use the evaluation set's labels and are None
    without any; ``*_missing`` says why a share is not shown, and is empty if it is.
    """

    yes: int
    no: int
    spam: int
    skipped: int
    evaluated: int
    precision: ShareEstimate | None
    precision_missing: str
    harvest: ShareEstimate | None
    harvest_missing: str
    pages: int


class LabellingSession:
    """Asks about one page after the other, and stores the answers.

    Without ``kept`` the labelled pages are not stored beside the labels.
    """

    def __init__(
        self,
        task: LabellingTask,
        crawled: FetchedPages,
        pool: TrainingPool,
        file: LabelFile,
        kept: LabelledPageStore | None,
    ) -> None:
        self.task = task
        self._file = file
        self._kept = kept
        self._current: ShownPage | None = None
        self._take_in(crawled, pool)

    @property
    def last(self) -> Label | None:
        """The label that :meth:`undo` would take back."""
        return self._file.labels[-1] if self._file.labels else None

    @property
    def crawled(self) -> FetchedPages:
        """The pages of the crawl, as last read."""
        return self._crawled

    def page(self, url: str) -> PageRow:
        """The crawl's page of that URL; raises :class:`LabelError` without it."""
        if url not in self._crawled.pages:
            raise LabelError(f"{url}: is not a page of this crawl")
        return self._crawled.pages[url]

    def current(self) -> ShownPage | None:
        """The page to label; unchanged until it is labelled; None when none is left."""
        if self._current is None:
            self._current = self._next()
        return self._current

    def answer(self, url: str, verdict: Verdict, category: str, at: float) -> Label:
        """Store the answer about ``url``, shown here or in another window.

        Raises :class:`LabelError` for a page that the crawl does not have or a category that the
        topic does not have.
        """
        page = self.page(url)
        if category and category not in {one.name for one in self.task.categories}:
            raise LabelError(f"{category}: is not a category of this topic")
        shown = self._current if self._current and self._current.page == page else None
        label = Label(
            url=url,
            verdict=verdict,
            role=role_of(url),
            at=at,
            category=category,
            reason=shown.reason if shown else "given",
            relevance=shown.relevance if shown else self._relevance(page),
            model=self.task.model,
            title=page.title.encode("utf-8", "replace").decode(),
        )
        fetched = self._crawled.response(page)
        if self._kept is not None and fetched is not None and verdict != "skip":
            self._kept.append(fetched, page.fetched_at)
        self._file.append(label)
        self._learn(label)
        self._current = None if shown else self._current
        return label

    def search(self, query: str) -> tuple[PageRow, ...]:
        """Unlabelled pages with the words of ``query``; see :func:`search_pages`."""
        labelled = {one.url for one in self._file.labels}
        return search_pages(self._crawled, self._pool, query, labelled)

    def show(self, url: str) -> ShownPage:
        """Show ``url``, picked from a search, next.

        Raises :class:`LabelError` for a page that the crawl does not have, and for one of the
        evaluation set, which is drawn at random only.
        """
        page = self.page(url)
        if role_of(url) == "evaluation":
            raise LabelError(f"{url}: belongs to the evaluation set, which is drawn at random only")
        self._current = ShownPage(
            page, "training", "searched", self._relevance(page), self._choice.good_pages_needed
        )
        return self._current

    def undo(self, at: float) -> Label | None:
        """Take back the last label and show its page again; None when there is none."""
        last = self.last
        if last is None:
            return None
        self._file.undo(last.url, at)
        self._take_in(self._crawled, self._pool)
        page = self._crawled.pages.get(last.url)
        if page is not None:
            self._current = ShownPage(page, last.role, last.reason, self._relevance(page))
        return last

    def progress(self) -> LabellingProgress:
        """Counts and estimates by all labels of the file."""
        labels = self._file.labels
        verdicts = Counter(one.verdict for one in labels)
        evaluated = [one for one in labels if one.role == "evaluation" and one.verdict != "skip"]
        on, off = (self._stratum(evaluated, on_topic) for on_topic in (True, False))
        precision = estimate_share(on)
        harvest = estimate_stratified_share([on, off], none_good=self._crawled.duplicates)
        return LabellingProgress(
            yes=verdicts["yes"],
            no=verdicts["no"],
            spam=verdicts["spam"],
            skipped=verdicts["skip"],
            evaluated=len(evaluated),
            precision=precision,
            precision_missing=withheld_reason(precision, on.drawn),
            harvest=harvest,
            harvest_missing=withheld_reason(harvest, on.drawn + off.drawn),
            pages=len(self._crawled.pages) + self._crawled.duplicates,
        )

    def refresh(self, crawled: FetchedPages, pool: TrainingPool) -> None:
        """Continue with a crawl that has fetched more; the shown page stays."""
        shown = self._current
        self._take_in(crawled, pool)
        if shown is not None and shown.page.url in crawled.pages:
            self._current = shown

    def _take_in(self, crawled: FetchedPages, pool: TrainingPool) -> None:
        self._crawled = crawled
        self._pool = pool
        self._places = {page.url: place for place, page in enumerate(pool.pages)}
        elsewhere = sum(
            one.verdict == "yes" and one.url not in self._places for one in self._file.labels
        )
        self._choice = PageSelector(pool, self.task.good_samples + elsewhere)
        self._drawn = evaluation_queue(crawled)
        self._current = None
        for label in self._file.labels:
            self._learn(label)

    def _learn(self, label: Label) -> None:
        place = self._places.get(label.url)
        if place is not None:
            self._choice.add_label(place, label.verdict)

    def _next(self) -> ShownPage | None:
        labels = self._file.labels
        evaluated = sum(one.role == "evaluation" for one in labels)
        if evaluated * EVALUATION_EVERY <= len(labels):
            return self._next_drawn() or self._next_helpful()
        return self._next_helpful() or self._next_drawn()

    def _next_drawn(self) -> ShownPage | None:
        labelled = {one.url for one in self._file.labels}
        for page in self._drawn:
            if page.url not in labelled and self._crawled.response(page) is not None:
                return ShownPage(page, "evaluation", "random", self._relevance(page))
        return None

    def _next_helpful(self) -> ShownPage | None:
        good_pages_needed = self._choice.good_pages_needed
        found = self._choice.next()
        if found is None:
            return None
        place, reason = found
        page = self._pool.pages[place]
        return ShownPage(
            page, "training", reason, float(self._pool.relevance[place]), good_pages_needed
        )

    def _relevance(self, page: PageRow) -> float:
        """The model's relevance, or the crawl's without a model."""
        place = self._places.get(page.url)
        if place is not None:
            return float(self._pool.relevance[place])
        classifier = self.task.classifier
        if classifier is None:
            return relevance_of(page)
        with BoundedParser() as parser:
            parsed = parser.parse_crawled_page(self._crawled, page)
        return classifier.classify(parsed).relevance if parsed else relevance_of(page)

    def _stratum(self, evaluated: list[Label], on_topic: bool) -> Stratum:
        pages = self._crawled.pages
        mine = [
            one for one in evaluated if one.url in pages and pages[one.url].on_topic == on_topic
        ]
        return Stratum(
            pages=sum(page.on_topic == on_topic for page in pages.values()),
            drawn=len(mine),
            good=sum(one.verdict == "yes" for one in mine),
        )


@contextmanager
def open_session(
    where: Path, labels: Path | None = None, progress: PoolProgress | None = None
) -> Iterator[LabellingSession]:
    """Open a session on the crawl at ``where``, its folder or its topic file.

    ``progress(done, total)`` is called while pages are read. Raises a
    :class:`focused.errors.FocusedError` when crawl or labels cannot be read, another session has
    the labels, or nothing was fetched yet.
    """
    task = find_labelling_task(where, labels)
    crawled = read_fetched_pages(task.folder)
    if not crawled.pages:
        raise StateError(f"{task.folder}: nothing is fetched yet; let the crawl run a while")
    with (
        LabelFile(task.labels) as file,
        LabelledPageStore(labelled_pages_path(task.labels)) as kept,
    ):
        pool = build_training_pool(crawled, task.classifier, progress)
        yield LabellingSession(task, crawled, pool, file, kept)


REASON_TEXTS: Mapping[Reason, str] = {
    "random": "Drawn at random",
    "uncertain": "The classifier is uncertain",
    "doubtful": "The classifier may be wrong",
    "high": "Ranked high",
    "searched": "Searched for",
    "given": "Labelled before",
}
"""Why a page is shown."""


def format_reason(shown: ShownPage) -> str:
    """Why the page is shown, and how many more on-topic pages are needed."""
    if not shown.good_pages_needed:
        return REASON_TEXTS[shown.reason]
    pages = "page" if shown.good_pages_needed == 1 else "pages"
    return (
        f"{REASON_TEXTS[shown.reason]}: {shown.good_pages_needed} more {pages} on topic needed "
        "(search for a word to find some)"
    )


def page_view(shown: ShownPage, text: RenderedPage, *, original: str) -> dict[str, Any]:
    """A page to label; for the evaluation set without anything that would bias the answer."""
    hidden = shown.role == "evaluation"
    return {
        "url": shown.page.url,
        "host": shown.page.host,
        "title": shown.page.title,
        "text": text.content,
        "problem": text.problem,
        "original": original,
        "role": shown.role,
        "reason": format_reason(shown),
        "relevance": None if hidden else shown.relevance,
        "score": None if hidden else shown.page.score,
    }


def progress_view(progress: LabellingProgress) -> dict[str, Any]:
    """Counts, and the shares that are not withheld."""
    view = {**dataclasses.asdict(progress), "counts": format_counts(progress)}
    for name in ("precision", "harvest"):
        if view[f"{name}_missing"]:
            view[name] = None
    return view


def format_counts(progress: LabellingProgress) -> str:
    """How many pages got which answer."""
    spam = f", {progress.spam} spam" if progress.spam else ""
    return f"{progress.yes} yes, {progress.no} no{spam}, {progress.skipped} skipped"
