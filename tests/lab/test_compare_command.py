"""``focused compare``: its output, resuming, and its messages for invalid input."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from focused.link_scoring.linear_model import list_shipped_priors
from focused.link_scoring.protocols import PageContext
from focused.orderings import PolicyInputs, ordering_names
from focused.web.page import Classification, Link, Page
from focused_lab.comparison_files import RUN_LOG_FILE, RunLog
from tests.lab.two_sides import build_web, compare, write_compared
from tests.support.command import focused
from tests.support.crawling import ROOT
from tests.support.forked import HANGS_AFTER_S
from tests.support.whale_models import WhaleClassifier, WhaleScorer


def document(folder: Path) -> Any:
    return json.loads((folder / "comparison" / "comparison.json").read_text())


def journal_lines(folder: Path) -> list[str]:
    return (folder / "comparison" / RUN_LOG_FILE).read_text().splitlines()


def fails_with(done: Result, *words: str) -> None:
    """One clear line, no traceback."""
    assert "Traceback" not in done.output
    (line,) = [each for each in done.stderr.splitlines() if "training" not in each][-1:]
    assert line.startswith("focused: "), done.stderr
    for word in words:
        assert word in line, done.stderr


def warns(done: Result, *words: str) -> None:
    assert any(all(word in line for word in words) for line in done.stderr.splitlines()), (
        done.stderr
    )


@pytest.fixture
def untrained(tmp_path: Path) -> Path:
    """A folder with the two-sided web in it, and a topic."""
    build_web(tmp_path / "web")
    write_compared(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the topic's model."""
    folder = tmp_path_factory.mktemp("trained")
    build_web(folder / "web")
    write_compared(folder)
    compare(folder, "--policies", "bfs", "--budget", "1")
    shutil.rmtree(folder / "comparison")
    return folder


@pytest.fixture
def drawn_sides(trained: Path, tmp_path: Path) -> Path:
    """A copy of the folder with web, topic and model."""
    return shutil.copytree(trained, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def sides(drawn_sides: Path, undrawn: None) -> Path:
    """The same; reports are without pictures."""
    return drawn_sides


def test_it_trains_compares_and_writes(untrained):
    sides = untrained
    wanted = sides / "new" / "out.json"
    done = compare(
        sides, "--policies", "focused,bfs", "--budget", "15", "--seeds", "topic",
        "--seeds", "off-topic:2", "--json", wanted,
    )  # fmt: skip
    whole = json.loads(wanted.read_text())
    assert whole == document(sides)
    assert {"focused", "command", "settings", "webs", "runs", "skipped", "summary", "ranks"} <= set(
        whole
    )
    assert {(run["policy"], run["seeds"]) for run in whole["runs"]} == {
        (policy, seeds) for policy in ("focused", "bfs") for seeds in ("topic", "off-topic:2")
    }
    for run in whole["runs"]:
        assert run["harvest"] == run["on_topic"] / run["fetched"]
        assert (run["web"], run["fetched"], run["budget"]) == ("two-sides", 15, 15)
    assert {row["policy"] for row in whole["summary"]} == {"focused", "bfs"}
    assert "Harvest by topic" in done.output


def test_a_prior_fitted_on_the_ground_truth_causes_a_warning(sides):
    details = json.loads((sides / "web" / "web.json").read_text())
    assert "fitted" not in compare(sides, "--policies", "focused", "--budget", "5").stderr
    (sides / "web" / "web.json").write_text(json.dumps(details | {"builder": "focused foldoc 1"}))
    done = compare(sides, "--policies", "focused", "--budget", "5")
    warns(done, "whales", "'all-webs' was fitted on", "without-foldoc")


def test_the_same_command_again_makes_no_run_again(sides):
    options = ("--policies", "bfs,dfs", "--budget", "5")
    compare(sides, *options)
    first, lines = document(sides), journal_lines(sides)
    done = compare(sides, *options)
    warns(done, "2 of 2 runs were done before")
    assert journal_lines(sides) == lines
    assert document(sides)["runs"] == first["runs"]


def test_more_policies_run_only_what_is_new(sides):
    compare(sides, "--policies", "bfs", "--budget", "5")
    done = compare(sides, "--policies", "dfs,bfs", "--budget", "5", "--repeat", "2")
    warns(done, "1 of 4 runs were done before")
    assert [run["policy"] for run in document(sides)["runs"]] == ["dfs", "bfs", "dfs", "bfs"]


@pytest.mark.parametrize("changed", ["topic", "labels", "budget", "samples", "prior"])
def test_runs_of_other_settings_are_kept_but_not_used(sides, changed):
    prior = sides / "own.json"
    if changed == "prior":
        prior.write_bytes(list_shipped_priors()["all-webs"].read_bytes())
        topic_file = sides / "whales.toml"
        text = topic_file.read_text().replace("[training]", '[training]\nlink_prior = "own.json"')
        topic_file.write_text(text)
    compare(sides, "--policies", "bfs", "--budget", "5")
    options = ["--policies", "bfs", "--budget", "6" if changed == "budget" else "5"]
    if changed == "topic":
        with (sides / "whales.toml").open("a") as topic:
            topic.write("# changed\n")
    if changed == "prior":
        prior.write_bytes(list_shipped_priors()["without-foldoc"].read_bytes())
    if changed == "samples":
        lines = (sides / "directory.tsv").read_text().splitlines(keepends=True)
        (sides / "directory.tsv").write_text("".join(lines[1:]))
    if changed == "labels":
        labels = (sides / "web" / "labels.tsv").read_text()
        (sides / "labels.tsv").write_text(labels.replace("Whales", "Whales/Blue"))
        options += ["--labels", str(sides / "labels.tsv")]
    done = compare(sides, *options)
    assert "done before" not in done.stderr
    assert len(journal_lines(sides)) == 2
    assert len(document(sides)["runs"]) == 1


def test_fresh_sets_the_earlier_runs_aside(sides):
    options = ("--policies", "bfs", "--budget", "5")
    compare(sides, *options)
    done = compare(sides, *options, "--fresh")
    warns(done, "moved to", "runs.1.jsonl")
    assert "done before" not in done.stderr
    assert len(journal_lines(sides)) == 1


def test_a_comparison_that_runs_is_not_set_aside(sides):
    with RunLog(sides / "comparison"):
        fails_with(compare(sides, "--fresh", status=2), "in use by another comparison")


def test_an_unwritable_output_is_an_error_before_the_first_run(sides):
    fails_with(
        compare(sides, "--json", sides / "whales.toml" / "x.json", status=2), "cannot be written"
    )
    assert not (sides / "comparison").exists()


def test_the_runs_of_a_document_are_shown_again(drawn_sides):
    sides = drawn_sides
    compare(sides, "--policies", "bfs,dfs", "--budget", "5")
    again = sides / "again"
    done = focused("compare", "--from", str(sides / "comparison/comparison.json"), "--out", again)
    assert "Harvest by topic" in done.output
    # Without a terminal the width is unknown: no figure may be cut.
    assert "…" not in done.stdout and max(map(len, done.stdout.splitlines()[:-1])) <= 100
    report = (sides / "comparison" / "report.html").read_text()
    assert (again / "report.html").read_text() == report


@pytest.mark.parametrize("option", ["--latency-s", "--delay-s"])
@pytest.mark.parametrize("seconds", ["nan", "inf"])
def test_seconds_that_never_pass_are_refused(sides, option, seconds):
    done = compare(sides, "--live", option, seconds, status=2)
    assert f"'{option}': {seconds} is not a finite number" in done.stderr


def test_a_document_of_somebody_else_cannot_steer_the_terminal(sides):
    compare(sides, "--policies", "bfs,dfs", "--budget", "5")
    foreign = json.dumps(document(sides)).replace('"dfs"', '"focused\\u001b[31m"')
    (sides / "foreign.json").write_text(foreign)
    done = focused("compare", "--from", str(sides / "foreign.json"), "--out", str(sides / "again"))
    assert r"focused\x1b[31m" in done.stdout and "\x1b" not in done.stdout


def test_starts_that_cannot_reach_the_topic_are_shown_apart(sides):
    starts = ("--seeds", "topic", "--seeds", "off-topic:2")
    done = compare(sides, "--policies", "bfs,oracle", "--budget", "5", *starts)
    assert "Starts from which the topic cannot be reached: 1 of 2" in done.stdout
    (apart,) = document(sides)["unreachable"]
    assert (apart["seeds"], apart["repeats"], apart["starts"]) == ("off-topic:2", [0], 1)
    assert all(row["runs"] == 1 for row in document(sides)["summary"])


def test_a_missing_web_or_topic_is_an_error_with_advice(tmp_path):
    fails_with(focused("compare", "--out", tmp_path, status=2), "--web", "--topic")


LONG = ("--policies", "bfs,dfs,random", "--budget", "60", "--repeat", "8")


def long_comparison(sides: Path, jobs: str) -> list[str]:
    """A comparison of 24 runs."""
    folders = [sides / "web", "--topic", sides / "whales.toml", "--out", sides / "comparison"]
    return ["compare", "--web", *map(str, folders), "--jobs", jobs, *LONG]


def environment(sides: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(sides)}


STOPPED_AFTER_THREE_RUNS = """
import os, sys
from focused.cli import main
from focused_lab.comparison_files import RunLog

add, number = RunLog.add, int(sys.argv.pop(1))

def add_and_stop(log, key, row):
    add(log, key, row)
    if len(log.rows) == 3:
        os.kill(os.getpid(), number)

if __name__ == "__main__":
    RunLog.add = add_and_stop
    main(prog_name="focused")
"""


def stopped_after_three_runs(
    sides: Path, number: signal.Signals, jobs: str
) -> subprocess.CompletedProcess[str]:
    """Run a comparison that sends itself a signal; its pipes close when its workers end."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            STOPPED_AFTER_THREE_RUNS,
            str(number.value),
            *long_comparison(sides, jobs),
        ],
        cwd=ROOT,
        env=environment(sides),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(sides, jobs):
    done = stopped_after_three_runs(sides, signal.SIGINT, jobs)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    kept = len(journal_lines(sides))
    assert f"stopped: {kept} of 24 runs are done" in done.stderr
    assert "the same command resumes" in done.stderr
    assert not list(sides.glob("focused-simulation-*"))
    warns(compare(sides, *LONG), f"{kept} of 24 runs were done before")
    assert len(journal_lines(sides)) == 24


def test_workers_end_with_a_command_that_is_killed(sides):
    done = stopped_after_three_runs(sides, signal.SIGKILL, "2")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not list(sides.glob("focused-simulation-*"))
    warns(compare(sides, *LONG), "3 of 24 runs were done before")


def test_several_webs_and_topics_are_compared_together(sides):
    build_web(sides / "other", each=30)
    trade = (sides / "whales.toml").read_text().replace("whales", "trade")
    (sides / "trade.toml").write_text(trade.replace("Top/Whales", "Top/Trade"))
    compare(
        sides, "--web", sides / "other", "--topic", sides / "trade.toml", "--policies", "bfs",
        "--budget", "x0.5",
    )  # fmt: skip
    runs = document(sides)["runs"]
    assert [(run["web"], run["topic"], run["budget"]) for run in runs] == [
        ("two-sides", "whales", 15),
        ("two-sides", "trade", 15),
        (str(sides / "other"), "whales", 11),
        (str(sides / "other"), "trade", 11),
    ]


def test_a_warc_file_is_imported_once_and_evaluated_by_custom_labels(sides):
    warc, labels = sides / "web" / "pages.warc.gz", sides / "web" / "labels.tsv"
    options = ("--labels", labels, "--policies", "bfs", "--budget", "5")
    first = compare(sides, *options, web=warc)
    warns(first, "82 responses from 1 WARC file")
    again = compare(sides, *options, web=warc)
    assert "responses" not in again.stderr
    warns(again, "1 of 1 runs were done before")
    assert document(sides)["runs"][0]["relevant"] == 30


def test_several_warc_files_are_one_web(sides):
    warc, labels = sides / "web" / "pages.warc.gz", sides / "web" / "labels.tsv"
    (sides / "a.warc.gz").write_bytes(warc.read_bytes())
    (sides / "b.warc.gz").write_bytes(warc.read_bytes())
    options = ("--labels", labels, "--policies", "bfs", "--budget", "5")
    compare(sides, "--web", sides / "b.warc.gz", *options, web=sides / "a.warc.gz")
    (web,) = document(sides)["webs"]
    assert (web["name"], web["pages"]) == ("a", 81)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policies", "sharp"], "no policy is named 'sharp'"),
        (["--policies", ","], "names no policy"),
        (["--seeds", "some"], "--seeds: 'some'"),
        (["--seeds", "on-topic:500"], "has only"),
        (["--budget", "much"], "--budget: 'much'"),
        (["--host-cap", "few"], "--host-cap: 'few'"),
        (["--out", "{folder}/whales.toml/out"], "is not writable"),
        (["--web", "{folder}/nowhere"], "there is no such file or folder"),
        (["--web", "{folder}"], "not a recorded web"),
        (["--web", "{folder}/whales.toml"], "are these WARC files?"),
        (["--labels", "{folder}/none.tsv"], "there is no such file"),
        (["--labels", "{folder}/whales.toml"], "expected url<TAB>category"),
        (["--topic", "{folder}/whales.toml"], "have the same name"),
        (["--topic", "{folder}/none.toml"], "there is no such topic file"),
    ],
)
def test_invalid_arguments_are_reported_in_a_line(sides, options, message):
    fails_with(compare(sides, *[each.format(folder=sides) for each in options], status=2), message)


def test_labels_of_unknown_urls_are_counted_and_the_rest_is_used(sides):
    labels = sides / "labels.tsv"
    more = "http://nowhere.test/1\tTop/Whales\nhttp://nowhere.test/2\tTop/Whales\n"
    labels.write_text((sides / "web" / "labels.tsv").read_text() + more)
    done = compare(sides, "--labels", labels, "--policies", "bfs", "--budget", "5")
    warns(done, "2 of its URLs are not in two-sides")
    assert document(sides)["runs"][0]["relevant"] == 30


def test_a_topic_without_pages_is_skipped_with_its_reason_and_others_run(sides):
    stars = (sides / "whales.toml").read_text().replace("whales", "stars")
    (sides / "stars.toml").write_text(stars.replace("Top/Whales", "Top/Stars"))
    options = ("--topic", sides / "stars.toml", "--policies", "bfs", "--budget", "5")
    done = compare(sides, *options)
    warns(done, "stars on two-sides is skipped", "Top/Stars")
    (skip,) = document(sides)["skipped"]
    assert (skip["web"], skip["topic"]) == ("two-sides", "stars")
    assert [run["topic"] for run in document(sides)["runs"]] == ["whales"]


def test_a_web_without_labels_is_reported(sides):
    (sides / "web" / "labels.tsv").unlink()
    fails_with(compare(sides, status=2), "nothing to run", "no labels", "--labels")


def test_damaged_records_cause_a_warning_and_the_rest_is_crawled(sides):
    warc = sides / "web" / "pages.warc.gz"
    whole = warc.read_bytes()
    middle = len(whole) // 2
    warc.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 : -100])
    done = compare(sides, "--policies", "bfs", "--budget", "5")
    warns(done, "damaged records are skipped")
    assert document(sides)["runs"][0]["fetched"] == 5


def test_damaged_records_of_a_warc_file_are_reported_at_import(sides):
    broken = sides / "broken.warc.gz"
    broken.write_bytes((sides / "web" / "pages.warc.gz").read_bytes()[:-100])
    labels = sides / "web" / "labels.tsv"
    done = compare(sides, "--labels", labels, "--policies", "bfs", "--budget", "5", web=broken)
    warns(done, "81 responses", "1 damaged")


def test_the_policy_in_the_docs_orders_links_as_it_says():
    text = (ROOT / "docs" / "how-to" / "compare.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    short = names["policy"](PolicyInputs(WhaleClassifier(), WhaleScorer()))
    links = [Link("http://a.test/long"), Link("http://a.test/")]
    scores = short.scorer.score(
        PageContext(Page("http://a.test/x"), Classification(0.5, True)), links
    ).scores
    assert scores[1] > scores[0]


def test_the_docs_name_every_policy():
    text = (ROOT / "docs" / "how-to" / "compare.md").read_text(encoding="utf-8")
    for name in ordering_names():
        assert f"`{name}`" in text, name
