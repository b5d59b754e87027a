"""Describe a session as text and JSON, for the label page and the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from focused.labelling.crawled_pages import CrawledPage
from focused.labelling.labelling_task import LabellingTask
from focused.labelling.page_renderer import RenderedPage
from focused.labelling.session import LabellingProgress, ShownPage
from focused.labels.label import Label, Reason
from focused.labels.precision_estimate import ShareEstimate, withheld_reason

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


def session_view(task: LabellingTask) -> dict[str, Any]:
    """The topic and its categories."""
    return {
        "topic": task.name,
        "description": task.description,
        "categories": [{"name": one.name, "good": one.good} for one in task.categories],
    }


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


def search_view(pages: Sequence[CrawledPage]) -> dict[str, Any]:
    """The results of a search."""
    return {"found": [{"url": page.url, "title": page.title or page.url} for page in pages]}


def label_view(label: Label) -> dict[str, Any]:
    """The last label, with the relevance that was hidden before."""
    return {
        "url": label.url,
        "title": label.title,
        "verdict": label.verdict,
        "category": label.category,
        "relevance": label.relevance,
    }


def progress_view(progress: LabellingProgress) -> dict[str, Any]:
    """Counts and shares."""
    return {
        "yes": progress.yes,
        "no": progress.no,
        "skipped": progress.skipped,
        "evaluated": progress.evaluated,
        "pages": progress.pages,
        **_share_view("precision", progress.precision, progress.precision_answers),
        **_share_view("harvest", progress.harvest, progress.harvest_answers),
    }


def _share_view(name: str, share: ShareEstimate | None, answers: int) -> dict[str, Any]:
    """The share, or why it is withheld."""
    missing = withheld_reason(share, answers)
    shown = None if missing or share is None else dataclasses.asdict(share)
    return {name: shown, f"{name}_missing": missing}
