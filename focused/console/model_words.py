"""Which models a crawl used, and the words that each gained and lost against the first.

A model's words are the thirty that contribute most to the score of its good samples, as in its
card. Models that were replaced are read from the kept versions beside the topic's model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from focused.archive.archive import PageRow
from focused.errors import ModelError

if TYPE_CHECKING:
    # Imported in functions: scikit-learn would double the console's memory.
    from focused.classifier.training_report import TrainedModel


@dataclass(frozen=True, slots=True)
class UsedModel:
    """A model of a crawl from page number ``page`` (from 1) and ``since`` on.

    ``words`` are its strongest words, strongest first, ``gained`` those that the first model lacks,
    ``lost`` those of the first that it lacks. All are empty if its file is no longer kept.
    """

    name: str
    page: int
    since: float
    is_kept: bool = False
    words: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class ModelWords:
    """Reads the models of one topic; a file that was read is not read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], tuple[TrainedModel, str] | None] = {}

    def used_models(self, rows: Sequence[PageRow], model: Path | None) -> list[UsedModel]:
        """Return the models that classified ``rows``, in order; ``model`` is the topic's file."""
        first_rows: dict[str, PageRow] = {}
        for row in rows:
            if row.model and row.outcome == "fetched":
                first_rows.setdefault(row.model, row)
        kept = self._kept(model) if model is not None and first_rows else {}
        names = list(first_rows)
        first = kept.get(names[0]) if names else None
        found = []
        for name, row in first_rows.items():
            own = kept.get(name)
            if own is None:
                found.append(UsedModel(name, row.seq + 1, row.fetched_at))
                continue
            from focused.classifier.model_comparison import word_changes

            changes = word_changes(own if first is None else first, own)
            words = tuple(word for word, _ in own.report.top_words)
            found.append(
                UsedModel(
                    name,
                    row.seq + 1,
                    row.fetched_at,
                    is_kept=True,
                    words=words,
                    gained=changes.gained,
                    lost=changes.lost,
                )
            )
        return found

    def _kept(self, model: Path) -> dict[str, TrainedModel]:
        """Return the current model and its earlier versions by name."""
        from focused.classifier.model_versions import list_versions, versions_folder

        versions = [versions_folder(model) / f"{each}.joblib" for each in list_versions(model)]
        found = {}
        for path in (*versions, model):
            loaded = self._load(path)
            if loaded is not None:
                found[loaded[1]] = loaded[0]
        return found

    def _load(self, path: Path) -> tuple[TrainedModel, str] | None:
        from focused.classifier.model_file import load_named_model

        try:
            key = (path, path.stat().st_mtime_ns)
        except OSError:
            return None
        if key not in self._known:
            try:
                self._known[key] = load_named_model(path)
            except ModelError:
                self._known[key] = None
        return self._known[key]
