"""The report of an examination: one HTML file that needs nothing else.

Names of topics, webs, seeds and policies come from files of others: the template
escapes all of it. Only the pictures are put in as they are, and those are ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from focused.evaluation.drawing import inline_svg
from focused.evaluation.findings import phrases
from focused.evaluation.findings.conclusions import Findings
from focused.evaluation.findings.grid import ABLATION, BASELINE, ORACLES, OURS, group_name
from focused.evaluation.findings.headline import cautions, details, headline
from focused.evaluation.findings.looks import looks
from focused.evaluation.findings.pairing import TIE
from focused.evaluation.findings.runs import Comparison
from focused.evaluation.findings.tables import cell_means
from focused.evaluation.wording import duration, plain

_PROGRAM = "focused"


def report_html(comparison: Comparison, findings: Findings, pictures: Mapping[str, str]) -> str:
    """The whole page; ``pictures`` by name as :func:`~focused.evaluation.drawing.as_svg`.

    It has no script and asks for nothing over the network.
    """
    environment = Environment(
        loader=PackageLoader("focused.evaluation.findings", "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.globals |= _CALLED
    drawn = {
        name: Markup(inline_svg(svg))  # noqa: S704  # our own drawing, names in it escaped
        for name, svg in pictures.items()
    }
    apart = ("harvest-by-topic", "critical-difference", "reliability")
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        findings=findings,
        grid=findings.grid,
        policies=findings.best_first,
        look=looks([each.policy for each in findings.best_first]),
        headline=headline(findings),
        details=details(findings),
        cautions=cautions(findings),
        command=command_line(comparison),
        curves=[picture for name, picture in drawn.items() if name not in apart],
        by_topic_picture=drawn.get(apart[0]),
        ranks_picture=drawn.get(apart[1]),
        scores_picture=drawn.get(apart[2]),
        by_topic=_by_topic(findings),
        by_start=cell_means(findings.grid),
        references=list(dict.fromkeys(each.reference for each in findings.paired)),
        tie=TIE,
        oracles=ORACLES,
        ours=OURS,
        baseline=BASELINE,
        ablation=ABLATION,
        widest=_widest(findings),
    )


def command_line(comparison: Comparison) -> str | None:
    """The command that made the comparison, as one types it; None when it was not kept."""
    command = comparison.command
    if not isinstance(command, tuple):
        return command
    program = () if command[:1] == (_PROGRAM,) else (_PROGRAM,)
    return shlex.join(program + command)


def _by_topic(findings: Findings) -> dict[tuple[str, str, str], float]:
    """Mean harvest over all kinds of start by policy, web and topic."""
    return {
        (each.policy, str(share.web), str(share.topic)): share.harvest.mean
        for each in findings.summary
        for share in each.by_topic
        if share.harvest is not None
    }


def _widest(findings: Findings) -> float:
    """Where the axis of the intervals ends, above 0 and at most 1."""
    ends = [
        each.harvest.mean if each.harvest.high is None else each.harvest.high
        for each in findings.summary
        if each.harvest is not None
    ]
    return min(1.0, max([*ends, 0.01]) * 1.02)


def _shade(value: float | None) -> str:
    """How strongly a cell of that harvest is tinted, in per cent."""
    return f"{0 if value is None else 45 * value:.0f}"


_CALLED = {
    "reached_pages": phrases.reached_pages,
    "reached_share": phrases.reached_share,
    "pages_interval": phrases.pages_interval,
    "reached_interval": phrases.reached_interval,
}
_FILTERS = {
    "share": phrases.share,
    "number": phrases.number,
    "points": phrases.points,
    "mean_share": phrases.mean_share,
    "mean_number": phrases.mean_number,
    "share_interval": phrases.share_interval,
    "points_interval": phrases.points_interval,
    "number_interval": phrases.number_interval,
    "signed": phrases.signed,
    "signed_interval": phrases.signed_interval,
    "counted": phrases.counted,
    "probability": phrases.probability,
    "group_name": group_name,
    "duration": duration,
    "plain": plain,
    "shade": _shade,
}
