"""``focused compare`` and ``focused compare-revisits``.

The first compares orderings on recorded webs by the webs' labels, the second revisit policies over
change histories.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import click
import msgspec
from rich.console import Console
from rich.text import Text

from focused.cli.common import echo
from focused.cli.progress_bars import page_progress, progress_bar
from focused.directory import samples_digest
from focused.directory.directory_reader import load_training_samples
from focused.errors import ConfigurationError
from focused.link_scoring.apprentice import Apprentice
from focused.orderings import PolicyInputs, find_policy
from focused.reports.formatting import single_line
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_analysis import analyse_runs
from focused_lab.analysis.comparison_runs import (
    ExperimentSettings,
    parse_comparison,
    read_comparison,
)
from focused_lab.analysis.report_files import write_comparison_report
from focused_lab.analysis.summary_text import summary_sentence
from focused_lab.analysis.tables import TABLES_WIDTH, all_tables
from focused_lab.comparison_files import (
    RunLog,
    build_comparison,
    check_writable,
    program_digest,
    rotate_run_log,
    write_comparison,
)
from focused_lab.experiment_plan import (
    ExperimentPlan,
    PreparedTopic,
    RequestedRuns,
    Trial,
    check_policies,
    parse_budget,
    parse_host_cap,
    parse_seed_set,
    plan_experiment,
    run_key,
    webs_by_topic,
)
from focused_lab.freshness.revisit_comparison import (
    RevisitSettings,
    SiteRow,
    load_sites,
    plan_runs,
    run_comparison,
)
from focused_lab.freshness.revisit_report import result_tables, summarise, write_report
from focused_lab.live_runs import run_live_trials
from focused_lab.parallel_runs import run_trials
from focused_lab.recorded_web.recorded_web import read_details
from focused_lab.run_measures import RunRecord
from focused_lab.simulation.link_graph import LinkGraph, open_link_graph
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.trials import prepare_topic
from focused_lab.web_sources import ExperimentWeb, find_webs

DOCUMENT_FILE = "comparison.json"
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""
_NOTHING_NAMED = "name at least one recorded web with --web, and one topic file with --topic"
_TABLES_WIDTH = 130
_LEAST_PAUSE_S = 10.0
_MAX_NAMED = 2


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of the command line, not parsed."""

    webs: tuple[Path, ...]
    labels: Path | None
    topics: tuple[Path, ...]
    policies: str
    seeds: tuple[str, ...]
    host_caps: tuple[str, ...]
    settings: ExperimentSettings
    jobs: int
    json_path: Path | None
    folder: Path
    fresh: bool = False


def compare_policies(options: CompareOptions) -> int:
    """Make the missing runs and show the results; return the exit status."""
    if not options.webs or not options.topics:
        raise ConfigurationError(_NOTHING_NAMED)
    wish = _requested_runs(options)
    topics = _by_name([load_topic(path) for path in options.topics])
    if options.json_path is not None:
        check_writable(options.json_path)
    if options.fresh:
        _move_runs_aside(options.folder)
    with RunLog(options.folder) as journal:
        if journal.damaged:
            _print_status(f"{journal.path}: {journal.damaged} damaged lines are skipped")
        work: _PlannedRuns | None = None
        try:
            webs = find_webs(options.webs, options.labels, options.folder / "webs", _print_status)
            candidates = _candidates(topics, webs)
            plan = plan_experiment(
                webs, list(topics.values()), candidates, wish, _print_status, _load_link_graph
            )
            _warn_of_seen_labels(plan, webs, candidates)
            if plan.settings.live:
                _check_live(plan, candidates)
            work = _PlannedRuns(
                plan, {each.name: each for each in webs}, candidates, journal, options.jobs
            )
            work.do()
        except KeyboardInterrupt:
            _print_status(_interruption_message(work, journal))
            return INTERRUPTED
        done = work.done
        rows = [done[trial] for trial in plan.trials]
    _finish(plan, rows, options)
    return 0


def _move_runs_aside(folder: Path) -> None:
    with RunLog(folder):  # locked: no other process writes
        aside = rotate_run_log(folder)
    if aside is not None:
        _print_status(f"the earlier runs were moved to {aside}")


def _interruption_message(work: _PlannedRuns | None, journal: RunLog) -> str:
    if work is None:
        return "stopped before the first run; run the same command to start again"
    journal.reload()
    return (
        f"stopped: {len(work.done)} of {work.total} runs are done and kept in {journal.path}; "
        "the same command resumes"
    )


class _PlannedRuns:
    """The runs of a plan, and those that the journal contains."""

    def __init__(
        self,
        plan: ExperimentPlan,
        webs: Mapping[str, ExperimentWeb],
        candidates: Mapping[str, PreparedTopic],
        journal: RunLog,
        jobs: int,
    ) -> None:
        self._plan = plan
        self._webs = webs
        self._candidates = candidates
        self._journal = journal
        self._jobs = jobs
        program = program_digest([trial.policy for trial in plan.trials])
        stamps = {name: web.stamp() for name, web in webs.items()}
        self._keys = {
            trial: run_key(
                trial, plan.settings, stamps[trial.web], candidates[trial.topic].digest, program
            )
            for trial in plan.trials
        }
        self.total = len(plan.trials)

    @property
    def done(self) -> dict[Trial, RunRecord]:
        """The planned runs in the journal."""
        kept = self._journal.rows
        return {trial: kept[key] for trial, key in self._keys.items() if key in kept}

    def do(self) -> None:
        """Make the missing runs; each is on disk before it is counted."""
        done = self.done
        remaining = [trial for trial in self._plan.trials if trial not in done]
        if done:
            _print_status(f"{len(done)} of {self.total} runs were done before")
        progress = _RunsProgress(self.total, len(done))
        with progress, closing(self._runs(remaining, progress)) as runs:
            for trial, row in runs:
                self._journal.add(self._keys[trial], row)
                progress.advance()

    def _runs(
        self, remaining: Sequence[Trial], progress: _RunsProgress
    ) -> Generator[tuple[Trial, RunRecord], None, None]:
        webs, candidates, settings = self._webs, self._candidates, self._plan.settings
        jobs, under_way = self._jobs, progress.under_way
        if not settings.live:
            return run_trials(webs, candidates, remaining, settings, jobs=jobs, under_way=under_way)
        folder = self._journal.path.with_name("live")
        return run_live_trials(
            webs, candidates, remaining, settings, folder, jobs=jobs, under_way=under_way
        )


class _RunsProgress:
    """Shows how many runs are done, which are running, and the remaining time."""

    def __init__(self, total: int, done: int) -> None:
        self._bar = progress_bar()
        self._total = total
        self._done = done
        self._task = self._bar.add_task("", total=total, completed=done)

    def under_way(self, trials: Sequence[Trial]) -> None:
        """Show the current runs."""
        named = [f"{trial.policy} on {single_line(trial.topic)}" for trial in trials]
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        self._bar.update(self._task, description=", ".join(named[:_MAX_NAMED]) + more)

    def advance(self) -> None:
        """Count a finished run."""
        self._bar.advance(self._task)
        self._done += 1
        tenths = self._done * 10 // self._total
        if tenths > (self._done - 1) * 10 // self._total and not self._bar.console.is_terminal:
            echo(f"focused: {self._done} of {self._total} runs are done", err=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def _warn_of_seen_labels(
    plan: ExperimentPlan, webs: Sequence[ExperimentWeb], candidates: Mapping[str, PreparedTopic]
) -> None:
    """Warn if a link prior was fitted on the labels that score its crawls."""
    builder = {each.name: str(read_details(each.folder).get("builder", "")) for each in webs}
    for web, topic in dict.fromkeys((trial.web, trial.topic) for trial in plan.trials):
        apprentice = candidates[topic].apprentice
        if not isinstance(apprentice, Apprentice):
            continue
        seen = set(builder[web].split()) & set(apprentice.prior.fitted_on)
        if seen:
            _print_status(
                f"{topic} on {web}: the link prior {apprentice.prior.name!r} was fitted on this "
                "web's labels, so its harvest flatters; let training.link_prior name one that was "
                f"not, such as 'without-{seen.pop()}'"
            )


def _check_live(plan: ExperimentPlan, candidates: Mapping[str, PreparedTopic]) -> None:
    """Raise ConfigurationError for a policy that is only for simulations."""
    for policy, topic in {trial.policy: trial.topic for trial in plan.trials}.items():
        find_policy(policy)(
            PolicyInputs(candidates[topic].classifier, candidates[topic].apprentice)
        )


def _requested_runs(options: CompareOptions) -> RequestedRuns:
    policies = [name.strip() for name in options.policies.split(",") if name.strip()]
    if not policies:
        raise ConfigurationError("--policies: names no policy")
    check_policies(policies, live=options.settings.live)
    parse_budget(options.settings.budget)
    caps = [parse_host_cap(text) for text in options.host_caps]
    seeds = [parse_seed_set(text, _print_status) for text in dict.fromkeys(options.seeds)]
    return RequestedRuns(list(dict.fromkeys(policies)), seeds, caps, options.settings)


def _by_name(topics: Sequence[Topic]) -> dict[str, Topic]:
    named = {topic.name: topic for topic in topics}
    if len(named) < len(topics):
        raise ConfigurationError("--topic: two of the topics have the same name")
    return named


def _candidates(
    topics: Mapping[str, Topic], webs: Sequence[ExperimentWeb]
) -> dict[str, PreparedTopic]:
    """Prepare the topics that some web has pages of; train their models if necessary."""
    found = {}
    for name, having in webs_by_topic(webs, list(topics.values())).items():
        topic = topics[name]
        if len(having) > 1:
            having = [max(having, key=lambda web: _samples_in(topic, web))]
        if having:
            found[name] = _candidate(topic, having[0])
    return found


def _samples_in(topic: Topic, examined: ExperimentWeb) -> int:
    with examined.open() as web:
        return sum(entry.url in web for entry in load_training_samples(topic.training).entries)


def _candidate(topic: Topic, web: ExperimentWeb) -> PreparedTopic:
    prepared = prepare_topic(topic, web.folder, _print_status)
    digest = hashlib.sha256(samples_digest(topic.training).encode())
    prior = Path(topic.training.link_prior)  # a bundled prior's name is in the topic file
    for path in (topic.path, topic.training.model, *([prior] if prior.is_file() else [])):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update("\n".join(sorted(prepared.sample_urls)).encode())
    return replace(prepared, digest=digest.hexdigest())


def _load_link_graph(web: ParsedWeb) -> LinkGraph:
    """Parse the web's pages once for all runs, and build the link graph."""
    with page_progress(web.web.folder.name) as progress:
        return open_link_graph(web, progress)


def show_comparison_file(path: Path, folder: Path) -> int:
    """Show and write the results of the document at ``path``."""
    comparison = read_comparison(path)
    _show(msgspec.to_builtins(comparison), folder)
    return 0


def _finish(plan: ExperimentPlan, rows: Sequence[RunRecord], options: CompareOptions) -> None:
    document = build_comparison(plan, rows, sys.argv[1:])
    for path in filter(None, (options.folder / DOCUMENT_FILE, options.json_path)):
        write_comparison(path, document)
    _show(document, options.folder)


def _show(document: Mapping[str, Any], folder: Path) -> None:
    comparison = parse_comparison(document)
    console = Console()
    # On narrow terminals and pipes, long lines wrap instead of being cut.
    console.width = max(console.width, TABLES_WIDTH)
    analysis = analyse_runs(comparison.runs, comparison.settings.seed)
    for table in all_tables(analysis):
        console.print(table)
        console.print()
    console.print(Text(single_line(summary_sentence(analysis))))
    report = write_comparison_report(document, folder)[0]
    echo(f"Report: {report}")


def _print_status(line: str) -> None:
    echo(f"focused: {line}", err=True)


def split_names(text: str, option: str) -> tuple[str, ...]:
    """Split a list at its commas. Raises click.BadParameter for an empty one."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("names nothing.", param_hint=option)
    return names


def split_days(text: str) -> tuple[float, ...]:
    """Parse mean intervals in days."""
    found = []
    for part in split_names(text, "--intervals"):
        try:
            days = float(part)
        except ValueError:
            days = 0.0
        if not 0 < days < 1e5:
            raise click.BadParameter(
                f"{part!r} is not a number of days, such as 30.", param_hint="--intervals"
            )
        found.append(days)
    return tuple(found)


def compare_revisits(settings: RevisitSettings, jobs: int, folder: Path) -> None:
    """Run all policies, print the tables, write the report into ``folder``."""
    runs = plan_runs(settings)
    sites = load_sites(settings)
    pages = sum(len(site.pages) for site in sites)
    echo(f"focused: {len(runs)} runs on {len(sites)} sites with {pages:,} pages", err=True)
    rows: list[SiteRow] = []
    shown_at = time.monotonic()
    for number, (run, made) in enumerate(run_comparison(settings, runs, jobs), start=1):
        rows += made
        if time.monotonic() - shown_at >= _LEAST_PAUSE_S:
            shown_at = time.monotonic()
            done = f"{number} of {len(runs)} runs are done"
            echo(f"focused: {done}, the last {run.policy} at {run.interval_days:g} days", err=True)
    measures = summarise(rows, settings.seed)
    console = Console()
    # On narrow terminals and pipes, long lines wrap instead of being cut.
    console.width = max(console.width, _TABLES_WIDTH)
    for table in result_tables(measures):
        console.print(table)
        console.print()
    written = write_report(settings, rows, measures, folder)
    echo(f"Report: {written[0]}, and {len(written) - 1} files beside it")
