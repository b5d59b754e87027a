"""Writes all that follows from a comparison into a folder: tables, pictures, the report."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from focused.errors import ComparisonError
from focused.evaluation.drawing import as_png, as_svg
from focused.evaluation.findings.conclusions import Findings, conclude, flat
from focused.evaluation.findings.grid import ABLATION, OURS
from focused.evaluation.findings.html import report_html
from focused.evaluation.findings.plots import draw_all
from focused.evaluation.findings.runs import (
    Comparison,
    comparison_of,
    curves_frame,
    runs_frame,
)
from focused.spreadsheet import cell_of_text
from focused.whole_file import write_whole


def write_findings(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the findings of a comparison's JSON document; return the files, the report first.

    ``report.html``; the frames of :func:`findings_frames` as Parquet, all
    but the curves as CSV, too; each picture as SVG and PNG. The folder is made;
    files of that name are replaced, others stay. Raises
    :class:`~focused.errors.ComparisonError` for a foreign or
    damaged document, and when the folder cannot be written.
    """
    comparison = comparison_of(document)
    findings = conclude(comparison.runs, comparison.terms.seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            write_whole(folder / name, content)
            for name, content in _contents(comparison, findings).items()
        ]
    except OSError as error:
        where = error.filename or folder
        raise ComparisonError(f"{where} cannot be written: {error.strerror}") from error


def findings_frames(comparison: Comparison, findings: Findings) -> dict[str, pd.DataFrame]:
    """``runs``, ``curves``, ``summary``, ``paired``, and where there are any ``ablations``,
    ``catching_up`` and ``calibration``, as flat frames.

    The summary leaves out what is by group and by topic: that follows from ``runs``.
    ``ablations`` are those of the pairs that leave a part of ours out, by kind of
    start, too. ``calibration`` has a row per policy and bin.
    """
    summary = [flat(each) for each in findings.summary]
    nested = ("by_group", "by_topic")
    paired = pd.DataFrame([flat(each) for each in findings.paired])
    further = {
        "ablations": _ablations_frame(paired),
        "catching_up": pd.DataFrame([flat(each) for each in findings.catching_up]),
        "calibration": _calibration_frame(findings),
    }
    return {
        "runs": runs_frame(comparison.runs),
        "curves": curves_frame(comparison.runs),
        "summary": pd.DataFrame(
            [{key: row[key] for key in row if key not in nested} for row in summary]
        ),
        "paired": paired,
        **{name: frame for name, frame in further.items() if len(frame)},
    }


def _ablations_frame(paired: pd.DataFrame) -> pd.DataFrame:
    if paired.empty:
        return paired
    return paired[(paired["reference"] == OURS) & paired["policy"].str.startswith(ABLATION)]


def _calibration_frame(findings: Findings) -> pd.DataFrame:
    rows = []
    for each in findings.calibration:
        whole = flat(each)
        bins = whole.pop("bins")
        of_all = {f"{key}_of_all" if key == "pages" else key: whole[key] for key in whole}
        rows += [{**of_all, **bin_} for bin_ in bins]
    return pd.DataFrame(rows)


def _contents(comparison: Comparison, findings: Findings) -> dict[str, bytes]:
    pictures = draw_all(findings, comparison.terms.seed)
    drawn = {name: as_svg(figure, name) for name, figure in pictures.items()}
    contents = {"report.html": report_html(comparison, findings, drawn).encode()}
    for name, frame in findings_frames(comparison, findings).items():
        if name != "curves":  # a hundred rows a run: fifty times its Parquet, and no one reads it
            contents[f"{name}.csv"] = _csv(frame)
        contents[f"{name}.parquet"] = _parquet(frame)
    for name, figure in pictures.items():
        contents[f"{name}.svg"] = drawn[name].encode()
        contents[f"{name}.png"] = as_png(figure)
    return contents


def _csv(frame: pd.DataFrame) -> bytes:
    # Names of topics, webs and seeds' files come from outside.
    safe = frame.map(lambda value: cell_of_text(value) if isinstance(value, str) else value)
    return safe.to_csv(index=False).encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    target = BytesIO()
    frame.to_parquet(target, index=False)
    return target.getvalue()
