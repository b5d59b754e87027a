"""Write the report of a comparison: a self-contained HTML file, tables and plots.

The template escapes all names, which come from untrusted files; only our own SVG is inserted as is.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from focused.corpus.writers import escape_formulas
from focused.errors import ComparisonError
from focused.files import write_atomically
from focused.orderings.policy_names import ABLATION_PREFIX, BASELINE, FOCUSED
from focused.reports.crawl_plots import to_png
from focused.reports.formatting import format_duration, single_line
from focused_lab.analysis import number_format
from focused_lab.analysis.comparison_analysis import (
    ComparisonAnalysis,
    analyse_runs,
    flatten_estimates,
)
from focused_lab.analysis.comparison_runs import (
    ORACLE_NAMES,
    Comparison,
    curves_frame,
    format_start_group,
    parse_comparison,
    runs_frame,
)
from focused_lab.analysis.paired_comparison import TIE_MARGIN
from focused_lab.analysis.plots import curve_styles, plot_all
from focused_lab.analysis.summary_text import caveats, detail_sentences, summary_sentence
from focused_lab.analysis.svg import inline_svg, to_svg
from focused_lab.analysis.tables import mean_harvest_by_cell

_PROGRAM = "focused"


def render_html(
    comparison: Comparison, analysis: ComparisonAnalysis, pictures: Mapping[str, str]
) -> str:
    """Render the page; ``pictures`` are SVG by name, see
    :func:`~focused_lab.analysis.svg.to_svg`.

    It has no script and loads nothing.
    """
    environment = Environment(
        loader=PackageLoader("focused_lab.analysis", "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _TEMPLATE_FILTERS
    environment.globals |= _FORMATS
    drawn = {
        name: Markup(inline_svg(svg))  # noqa: S704  # our own drawing, names in it escaped
        for name, svg in pictures.items()
    }
    apart = ("harvest-by-topic", "critical-difference", "reliability")
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        analysis=analysis,
        grid=analysis.grid,
        policies=analysis.best_first,
        styles=curve_styles([each.policy for each in analysis.best_first]),
        headline=summary_sentence(analysis),
        details=detail_sentences(analysis),
        cautions=caveats(analysis),
        command=format_command(comparison),
        curves=[picture for name, picture in drawn.items() if name not in apart],
        by_topic_picture=drawn.get(apart[0]),
        ranks_picture=drawn.get(apart[1]),
        scores_picture=drawn.get(apart[2]),
        by_topic=_by_topic(analysis),
        by_start=mean_harvest_by_cell(analysis.grid),
        references=list(dict.fromkeys(each.reference for each in analysis.paired)),
        tie=TIE_MARGIN,
        oracles=ORACLE_NAMES,
        ours=FOCUSED,
        baseline=BASELINE,
        ablation=ABLATION_PREFIX,
        widest=_axis_end(analysis),
    )


def format_command(comparison: Comparison) -> str | None:
    """The command that made the comparison, quoted for a shell; None if unknown."""
    command = comparison.command
    if not isinstance(command, tuple):
        return command
    program = () if command[:1] == (_PROGRAM,) else (_PROGRAM,)
    return shlex.join(program + command)


def _by_topic(analysis: ComparisonAnalysis) -> dict[tuple[str, str, str], float]:
    """Mean harvest over all kinds of start by policy, web and topic."""
    return {
        (each.policy, str(share.web), str(share.topic)): share.harvest.mean
        for each in analysis.summary
        for share in each.by_topic
        if share.harvest is not None
    }


def _axis_end(analysis: ComparisonAnalysis) -> float:
    """The end of the axis of intervals, above 0 and at most 1."""
    ends = [
        each.harvest.mean if each.harvest.high is None else each.harvest.high
        for each in analysis.summary
        if each.harvest is not None
    ]
    return min(1.0, max([*ends, 0.01]) * 1.02)


def _tint_percent(value: float | None) -> str:
    """The tint of a cell with that harvest, in per cent."""
    return f"{0 if value is None else 45 * value:.0f}"


_FORMATS = {
    name: function for name, function in vars(number_format).items() if name.startswith("format_")
}
_TEMPLATE_FILTERS = {
    **_FORMATS,
    "share": number_format.share,
    "format_start_group": format_start_group,
    "duration": format_duration,
    "plain": single_line,
    "shade": _tint_percent,
}


def write_comparison_report(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the report of a comparison's JSON document; return its files, the HTML first.

    Writes ``report.html``, the frames of :func:`analysis_frames` as Parquet and, except the curves,
    as CSV, and each plot as SVG and PNG. Creates the folder and replaces files of those names.
    Raises :class:`~focused.errors.ComparisonError` for a foreign or damaged document, or when the
    folder cannot be written.
    """
    comparison = parse_comparison(document)
    analysis = analyse_runs(comparison.runs, comparison.settings.seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            write_atomically(folder / name, content)
            for name, content in _report_files(comparison, analysis).items()
        ]
    except OSError as error:
        where = error.filename or folder
        raise ComparisonError(f"{where} cannot be written: {error.strerror}") from error


def analysis_frames(
    comparison: Comparison, analysis: ComparisonAnalysis
) -> dict[str, pd.DataFrame]:
    """The statistics as flat frames, by name; empty ones of the last four are left out.

    ``runs`` and ``curves`` (of all runs), ``summary`` (without groups and topics, which follow from
    ``runs``), ``paired``, ``unreachable`` (the starts that all statistics leave out), ``ablations``
    (the pairs of ablations), ``pages_to_baseline`` and ``calibration`` (a row per policy and bin).
    """
    summary = [flatten_estimates(each) for each in analysis.summary]
    nested = ("by_group", "by_topic")
    paired = pd.DataFrame([flatten_estimates(each) for each in analysis.paired])
    further = {
        "unreachable": _unreachable_frame(analysis),
        "ablations": _ablations_frame(paired),
        "pages_to_baseline": pd.DataFrame(
            [flatten_estimates(each) for each in analysis.pages_to_baseline]
        ),
        "calibration": _calibration_frame(analysis),
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
    return paired[
        (paired["reference"] == FOCUSED) & paired["policy"].str.startswith(ABLATION_PREFIX)
    ]


def _unreachable_frame(analysis: ComparisonAnalysis) -> pd.DataFrame:
    columns = ("web", "topic", "seeds", "host_cap")
    rows = [
        {name: getattr(each, name) for name in columns} | {"repeat": repeat}
        for each in analysis.unreachable
        for repeat in each.repeats
    ]
    return pd.DataFrame(rows, columns=[*columns, "repeat"]).astype({"host_cap": "Int64"})


def _calibration_frame(analysis: ComparisonAnalysis) -> pd.DataFrame:
    rows = []
    for each in analysis.calibration:
        whole = flatten_estimates(each)
        bins = whole.pop("bins")
        of_all = {f"{key}_of_all" if key == "pages" else key: whole[key] for key in whole}
        rows += [{**of_all, **bin_} for bin_ in bins]
    return pd.DataFrame(rows)


def _report_files(comparison: Comparison, analysis: ComparisonAnalysis) -> dict[str, bytes]:
    pictures = plot_all(analysis, comparison.settings.seed)
    drawn = {name: to_svg(figure, name) for name, figure in pictures.items()}
    contents = {"report.html": render_html(comparison, analysis, drawn).encode()}
    for name, frame in analysis_frames(comparison, analysis).items():
        if name != "curves":  # fifty times the size of its Parquet
            contents[f"{name}.csv"] = _csv(frame)
        contents[f"{name}.parquet"] = _parquet(frame)
    for name, figure in pictures.items():
        contents[f"{name}.svg"] = drawn[name].encode()
        contents[f"{name}.png"] = to_png(figure)
    return contents


def _csv(frame: pd.DataFrame) -> bytes:
    # Names of topics, webs and seeds' files are untrusted.
    safe = frame.map(lambda value: escape_formulas(value) if isinstance(value, str) else value)
    return safe.to_csv(index=False).encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    target = BytesIO()
    frame.to_parquet(target, index=False)
    return target.getvalue()
