"""``focused compare``: policies side by side on recorded webs, judged by their labels."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from focused.cli.output import echo
from focused.cli.progress import RunsProgress, reading_progress
from focused.directory.samples import samples_digest, training_samples
from focused.errors import ConfigurationError
from focused.evaluation.examination.candidate import Candidate
from focused.evaluation.examination.document import check_writable, document_of, write_document
from focused.evaluation.examination.journal import Journal, program_digest, set_aside
from focused.evaluation.examination.live import examine_live
from focused.evaluation.examination.measures import Row
from focused.evaluation.examination.plan import Plan, Trial, Wish, make_plan, run_key, webs_with
from focused.evaluation.examination.starts import parse_seeds
from focused.evaluation.examination.terms import (
    Terms,
    check_policies,
    parse_budget,
    parse_host_cap,
)
from focused.evaluation.examination.webs import ExaminedWeb, webs_of
from focused.evaluation.examination.workers import examine
from focused.evaluation.findings.conclusions import conclude
from focused.evaluation.findings.export import write_findings
from focused.evaluation.findings.headline import headline
from focused.evaluation.findings.runs import comparison_of, read_comparison
from focused.evaluation.findings.table_frame import TABLES_WIDTH
from focused.evaluation.findings.tables import all_tables
from focused.evaluation.simulation.link_graph import LinkGraph, open_link_graph
from focused.evaluation.simulation.parsed_web import ParsedWeb
from focused.evaluation.wording import plain
from focused.learning.apprentice import Apprentice
from focused.policies import Aids, policy_named
from focused.recorded.store import read_details
from focused.scrapy_addon.guide import guide_for
from focused.topic import Topic
from focused.topic_file import load_topic

DOCUMENT_FILE = "comparison.json"
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What the command line says, unread."""

    webs: tuple[Path, ...]
    labels: Path | None
    topics: tuple[Path, ...]
    policies: str
    seeds: tuple[str, ...]
    host_caps: tuple[str, ...]
    terms: Terms
    jobs: int
    json_path: Path | None
    folder: Path
    fresh: bool = False


def compare_policies(options: CompareOptions) -> int:
    """Make the runs that are not done yet, show what follows; return the exit status."""
    if not options.webs or not options.topics:
        raise ConfigurationError(
            "name at least one recorded web with --web, and one topic file with --topic"
        )
    wish = _wish(options)
    topics = _by_name([load_topic(path) for path in options.topics])
    if options.json_path is not None:
        check_writable(options.json_path)
    if options.fresh:
        _set_aside(options.folder)
    with Journal(options.folder) as journal:
        if journal.damaged:
            _say(f"{journal.path}: {journal.damaged} damaged lines are passed over")
        work: _Work | None = None
        try:
            webs = webs_of(options.webs, options.labels, options.folder / "webs", _say)
            candidates = _candidates(topics, webs)
            plan = make_plan(webs, list(topics.values()), candidates, wish, _say, _read_whole)
            _tell_of_seen_labels(plan, webs, candidates)
            if plan.terms.live:
                _check_live(plan, candidates)
            work = _Work(
                plan, {each.name: each for each in webs}, candidates, journal, options.jobs
            )
            work.do()
        except KeyboardInterrupt:
            _say(_how_far(work, journal))
            return INTERRUPTED
        done = work.done
        rows = [done[trial] for trial in plan.trials]
    _finish(plan, rows, options)
    return 0


def _set_aside(folder: Path) -> None:
    with Journal(folder):  # nobody else writes it now
        aside = set_aside(folder)
    if aside is not None:
        _say(f"the earlier runs were moved to {aside}")


def _how_far(work: _Work | None, journal: Journal) -> str:
    if work is None:
        return "stopped before the first run; the same command begins again"
    journal.reread()
    return (
        f"stopped: {len(work.done)} of {work.total} runs are done and kept in {journal.path}; "
        "the same command goes on"
    )


class _Work:
    """The runs of a plan, with what the journal has of them already."""

    def __init__(
        self,
        plan: Plan,
        webs: Mapping[str, ExaminedWeb],
        candidates: Mapping[str, Candidate],
        journal: Journal,
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
                trial, plan.terms, stamps[trial.web], candidates[trial.topic].digest, program
            )
            for trial in plan.trials
        }
        self.total = len(plan.trials)

    @property
    def done(self) -> dict[Trial, Row]:
        """The plan's runs that are in the journal."""
        kept = self._journal.rows
        return {trial: kept[key] for trial, key in self._keys.items() if key in kept}

    def do(self) -> None:
        """Make what is missing; each run is on disk before the next is told of."""
        done = self.done
        left = [trial for trial in self._plan.trials if trial not in done]
        if done:
            _say(f"{len(done)} of {self.total} runs were done before")
        progress = RunsProgress(self.total, len(done))
        with progress, closing(self._runs(left, progress)) as runs:
            for trial, row in runs:
                self._journal.add(self._keys[trial], row)
                progress.advance()

    def _runs(
        self, left: Sequence[Trial], progress: RunsProgress
    ) -> Generator[tuple[Trial, Row], None, None]:
        webs, candidates, terms = self._webs, self._candidates, self._plan.terms
        jobs, under_way = self._jobs, progress.under_way
        if not terms.live:
            return examine(webs, candidates, left, terms, jobs=jobs, under_way=under_way)
        folder = self._journal.path.with_name("live")
        return examine_live(webs, candidates, left, terms, folder, jobs=jobs, under_way=under_way)


def _tell_of_seen_labels(
    plan: Plan, webs: Sequence[ExaminedWeb], candidates: Mapping[str, Candidate]
) -> None:
    """Say where a topic's link prior was fitted on the labels that are to judge its crawls."""
    builder = {each.name: str(read_details(each.folder).get("builder", "")) for each in webs}
    for web, topic in dict.fromkeys((trial.web, trial.topic) for trial in plan.trials):
        apprentice = candidates[topic].apprentice
        if not isinstance(apprentice, Apprentice):
            continue
        seen = set(builder[web].split()) & set(apprentice.prior.fitted_on)
        if seen:
            _say(
                f"{topic} on {web}: the link prior {apprentice.prior.name!r} was fitted on this "
                "web's labels, so its harvest flatters; let training.link_prior name one that was "
                f"not, such as 'without-{seen.pop()}'"
            )


def _check_live(plan: Plan, candidates: Mapping[str, Candidate]) -> None:
    """Raise ConfigurationError for a policy that cannot steer a real crawl."""
    for policy, topic in {trial.policy: trial.topic for trial in plan.trials}.items():
        policy_named(policy)(Aids(candidates[topic].judge, candidates[topic].apprentice))


def _wish(options: CompareOptions) -> Wish:
    policies = [name.strip() for name in options.policies.split(",") if name.strip()]
    if not policies:
        raise ConfigurationError("--policies: names no policy")
    check_policies(policies, live=options.terms.live)
    parse_budget(options.terms.budget)
    caps = [parse_host_cap(text) for text in options.host_caps]
    seeds = [parse_seeds(text, _say) for text in dict.fromkeys(options.seeds)]
    return Wish(list(dict.fromkeys(policies)), seeds, caps, options.terms)


def _by_name(topics: Sequence[Topic]) -> dict[str, Topic]:
    named = {topic.name: topic for topic in topics}
    if len(named) < len(topics):
        raise ConfigurationError("--topic: two of the topics have the same name")
    return named


def _candidates(topics: Mapping[str, Topic], webs: Sequence[ExaminedWeb]) -> dict[str, Candidate]:
    """The topics that some web has pages of, with their models, trained where they must be."""
    found = {}
    for name, having in webs_with(webs, list(topics.values())).items():
        topic = topics[name]
        if len(having) > 1:
            having = [max(having, key=lambda web: _samples_in(topic, web))]
        if having:
            found[name] = _candidate(topic, having[0])
    return found


def _samples_in(topic: Topic, examined: ExaminedWeb) -> int:
    with examined.open() as web:
        return sum(entry.url in web for entry in training_samples(topic.training).entries)


def _candidate(topic: Topic, web: ExaminedWeb) -> Candidate:
    guide = guide_for(topic, web=str(web.folder), replay=None, say=_say)
    digest = hashlib.sha256(samples_digest(topic.training).encode())
    prior = Path(topic.training.link_prior)  # a shipped one's name is in the topic file
    for path in (topic.path, topic.training.model, *([prior] if prior.is_file() else [])):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update("\n".join(sorted(guide.training_urls)).encode())
    return Candidate(topic, guide.judge, guide.scorer, guide.training_urls, digest.hexdigest())


def _read_whole(web: ParsedWeb) -> LinkGraph:
    """Parse the web's pages once, for all runs, and see who links to whom."""
    with reading_progress(web.web.folder.name) as progress:
        return open_link_graph(web, progress)


def findings_again(path: Path, folder: Path) -> int:
    """Show and write anew what follows from the document at ``path``."""
    comparison = read_comparison(path)
    _show(msgspec.to_builtins(comparison), folder)
    return 0


def _finish(plan: Plan, rows: Sequence[Row], options: CompareOptions) -> None:
    document = document_of(plan, rows, sys.argv[1:])
    for path in filter(None, (options.folder / DOCUMENT_FILE, options.json_path)):
        write_document(path, document)
    _show(document, options.folder)


def _show(document: Mapping[str, Any], folder: Path) -> None:
    comparison = comparison_of(document)
    console = Console()
    # Where there is less room, or a pipe: long lines that wrap, no figures that are cut.
    console.width = max(console.width, TABLES_WIDTH)
    findings = conclude(comparison.runs, comparison.terms.seed)
    for table in all_tables(findings):
        console.print(table)
        console.print()
    console.print(Text(plain(headline(findings))))
    report = write_findings(document, folder)[0]
    echo(f"Report: {report}")


def _say(line: str) -> None:
    echo(f"focused: {line}", err=True)
