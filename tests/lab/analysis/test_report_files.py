"""The report's files: tables that fit, plots, and a page that escapes all names."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from focused.errors import FocusedError
from focused.reports.crawl_plots import spread_labels
from focused_lab.analysis.comparison_analysis import analyse_runs
from focused_lab.analysis.comparison_runs import runs_of
from focused_lab.analysis.plots import resample_curve
from focused_lab.analysis.report_files import write_comparison_report
from focused_lab.analysis.tables import all_tables
from tests.lab.analysis.comparison_rows import Row, document, run, runs

HOSTILE = '<script>alert("x")</script>$\\frac{\x1b[31m'
MANY = [f"policy-number-{n}" for n in range(16)] + ["focused", "bfs"]


def two_topics(*policies: str) -> list[Row]:
    harvests = {policy: [0.2 + 0.02 * n, 0.3] for n, policy in enumerate(policies)}
    both = {"whales": harvests, "ships": harvests}
    return runs(both) + runs(both, seeds="off-topic:5", host_cap=300)


def with_scores(rows: list[Row]) -> list[Row]:
    """The rows with the widest possible figures."""
    bins = [[n, 12_345, 2_345, 2_500.0, 1_900.0] for n in range(10)]
    nothing = [
        run(row["policy"], 0.0, web="w" * 18, topic="t" * 26, seeds="off-topic:5", host_cap=300)
        | {"repeat": repeat, "reachable": 0}
        for row in rows
        if row["repeat"] == 0 and row["topic"] == "whales" and row["host_cap"] is None
        for repeat in range(9)
    ]
    return [row | {"score_bins": bins} for row in rows] + nothing


def printed(rows: list[Row]) -> str:
    """The tables on a terminal of a hundred columns."""
    console = Console(width=100)
    with console.capture() as capture:
        for table in all_tables(analyse_runs(runs_of(rows))):
            console.print(table)
    return capture.get()


def page_of(folder: Path) -> str:
    return (folder / "report.html").read_text("utf-8")


class Tags(HTMLParser):
    """Collects the elements of a page and the URLs they load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.sources: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]


COMMAND = ["compare", "--web", "my web", "--policies", "focused,bfs"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The files of a report on focused and bfs; don't write to their folder."""
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    return write_comparison_report(document(two_topics("focused", "bfs"), command=COMMAND), folder)


@pytest.fixture
def page(written: Sequence[Path]) -> str:
    """The page of that report."""
    return page_of(written[0].parent)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The files of a report without focused, bfs and starts that are unreachable."""
    folder = tmp_path_factory.mktemp("plain")
    return write_comparison_report(document(two_topics("shark", "dfs")), folder)


def test_the_folder_has_report_frames_and_pictures(written):
    names = {path.name for path in written}
    assert written[0].name == "report.html"
    assert {"runs.csv", "runs.parquet", "curves.parquet", "summary.csv", "paired.csv"} <= names
    assert {"critical-difference.svg", "harvest-by-topic.png"} <= names
    assert {"harvest-1-seeds-on-topic-5.svg", "recall-1-seeds-on-topic-5.png"} <= names
    assert names == {path.name for path in written[0].parent.iterdir()}
    csv, parquet = (
        pd.read_csv(written[0].parent / "runs.csv"),
        pd.read_parquet(written[0].parent / "runs.parquet"),
    )
    assert len(csv) == len(parquet) == 16


@pytest.mark.usefixtures("undrawn")
def test_no_name_in_a_csv_file_is_a_formula(tmp_path):
    rows = [row | {"web": '=HYPERLINK("http://x.test")'} for row in two_topics("focused", "bfs")]
    write_comparison_report(document(rows), tmp_path)
    webs = pd.read_csv(tmp_path / "runs.csv")["web"]
    assert set(webs) == {'\'=HYPERLINK("http://x.test")'}


def test_calibration_ablations_and_pages_needed_have_files_and_sections(tmp_path):
    rows = two_topics("bfs", "focused-without-url", "focused")
    for row in rows:
        row["score_bins"] = [[1, 40, 8, 6.0, 6.5]] if "focused" in row["policy"] else None
    names = {path.name for path in write_comparison_report(document(rows), tmp_path)}
    further = {"ablations", "pages_to_baseline", "calibration"}
    assert {f"{name}.{kind}" for name in further for kind in ("csv", "parquet")} <= names
    assert {"reliability.svg", "reliability.png"} <= names
    ablations = pd.read_csv(tmp_path / "ablations.csv")
    assert set(ablations["policy"]) == {"focused-without-url"}
    assert {"difference_low", "area_difference_high"} <= set(ablations)
    scores = pd.read_csv(tmp_path / "calibration.csv")
    assert scores["pages"].tolist() == [320, 320]
    assert set(pd.read_csv(tmp_path / "pages_to_baseline.csv")["policy"]) >= {"focused", "bfs"}
    page = page_of(tmp_path)
    assert "Ablations of focused" in page
    assert "Calibration of scores" in page
    assert "Pages needed for what bfs finds" in page


def test_a_comparison_without_them_has_no_such_files_and_sections(plain):
    names = {path.name for path in plain}
    assert (
        not {"ablations.csv", "pages_to_baseline.csv", "calibration.csv", "reliability.svg"} & names
    )
    page = page_of(plain[0].parent)
    assert "Ablations of" not in page and "Calibration of scores" not in page
    assert "Pages needed" not in page


@pytest.mark.usefixtures("undrawn")
def test_unreachable_starts_have_a_section_and_a_file_of_their_own(tmp_path):
    rows = two_topics("focused", "bfs")
    rows += [run(policy, 0.0, seeds="off-topic:5", reachable=0) for policy in ("focused", "bfs")]
    write_comparison_report(document(rows), tmp_path)
    page = page_of(tmp_path)
    assert "Starts from which the topic cannot be reached</h2>" in page
    assert "16 runs of 2 policies from 8 starts on 2 topics; without 2 runs from 1 start" in page
    (apart,) = pd.read_csv(tmp_path / "unreachable.csv").itertuples()
    assert (apart.topic, apart.seeds, apart.repeat) == ("whales", "off-topic:5", 0)
    assert pd.read_csv(tmp_path / "runs.csv")["reachable"].eq(0).sum() == 2


def test_without_unreachable_starts_there_is_no_section(plain):
    assert "unreachable.csv" not in {path.name for path in plain}
    assert "cannot be reached" not in page_of(plain[0].parent)


@pytest.mark.usefixtures("undrawn")
def test_shares_of_the_oracles_have_a_table(tmp_path):
    write_comparison_report(document(two_topics("focused", "oracle", "path-oracle")), tmp_path)
    assert "what perfect link evidence attains" in page_of(tmp_path)


def test_hostile_names_are_text_in_the_page_and_in_its_pictures(tmp_path):
    rows = [
        run(policy, 0.3, topic=topic, seeds=HOSTILE, web=HOSTILE)
        for policy in ("focused", "bfs")
        for topic in (HOSTILE, "ships")
    ]
    rows.append(run("bfs", 0.0, topic=HOSTILE, seeds="x", web=HOSTILE, reachable=0))
    skipped = [{"web": HOSTILE, "topic": HOSTILE, "why": HOSTILE}]
    whole = document(rows, focused=HOSTILE, skipped=skipped, command=HOSTILE)
    written = write_comparison_report(whole, tmp_path)
    page = page_of(tmp_path)
    assert "script" not in Tags(page).names
    assert "&lt;script&gt;" in page
    for path in written:
        assert path.parent == tmp_path
        if path.suffix == ".svg":
            root = ElementTree.fromstring(path.read_text("utf-8"))
            assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_the_page_loads_nothing(page):
    tags = Tags(page)
    assert all(source.startswith("#") for source in tags.sources)
    assert not {"script", "link", "img", "iframe"} & set(tags.names)


def test_ids_are_in_the_page_once(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_the_page_has_the_command(page):
    assert "focused compare --web &#39;my web&#39; --policies focused,bfs" in page


def test_the_same_document_gives_the_same_page_and_pictures(written, tmp_path):
    write_comparison_report(document(two_topics("focused", "bfs"), command=COMMAND), tmp_path)
    same = [path for path in written if path.suffix in (".html", ".svg")]
    assert len(same) > 3
    for path in same:
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


@pytest.mark.parametrize("rows", [[], [run("focused", 0.4)], [run("bfs", 0.0, fetched=1)]])
def test_none_and_single_runs_have_a_report_too(tmp_path, rows):
    write_comparison_report(document(rows), tmp_path)
    assert "</html>" in page_of(tmp_path)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FocusedError, match="cannot be written"):
        write_comparison_report(document([run("bfs", 0.2)]), tmp_path / "file" / "folder")


@pytest.mark.parametrize("policies", [("focused", "bfs", "oracle"), MANY])
def test_tables_fit_a_hundred_columns_and_cut_no_figure(policies):
    text = printed(with_scores(two_topics(*policies)))
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    assert all(policy in text for policy in policies)


def test_names_of_ablations_are_cut_distinctly_and_their_tables_fit():
    parts = ("exploration-of-hosts", "other-host", "word")
    policies = ["focused", *(f"focused-without-{part}" for part in parts), "bfs"]
    text = printed(with_scores(two_topics(*policies)))
    assert max(map(len, text.splitlines())) <= 100
    assert all(part in text for part in parts)
    assert "…without-other-host" in text and "focused-without-word" in text


def test_names_of_custom_policies_are_cut_to_their_ends():
    own = ("my_project.policies.shorter.policy", "my_project.policies.longer.policy")
    text = printed(two_topics(*own))
    assert "ies.shorter.policy" in text and "ies.longer.policy" in text


def test_the_terminal_is_not_steered_by_names():
    rows = [run(policy, 0.3, topic=HOSTILE, seeds=HOSTILE) for policy in ("focused", "bfs")]
    rows += [run("bfs", 0.0, topic=HOSTILE, web=HOSTILE, seeds=HOSTILE, reachable=0)]
    assert "\x1b[31m" not in printed(rows)


def test_what_a_run_left_of_its_budget_counts_as_off_topic_in_its_curve():
    (early,) = runs_of([run("bfs", 0.5, fetched=50)])
    curve = resample_curve(early, "harvest")
    assert curve[49] == pytest.approx(0.5)
    assert curve[99] == pytest.approx(0.25)
    assert resample_curve(early, "recall")[99] == pytest.approx(25 / 200)


def test_labels_keep_their_distance_and_their_order():
    heights = [0.5, 0.51, 0.505, 0.98, 1.0, 0.1]
    placed = spread_labels(heights, 0.05)
    assert (np.diff(np.sort(placed)) >= 0.05 - 1e-9).all()
    assert np.array_equal(np.argsort(placed), np.argsort(heights))
    assert placed.min() >= 0 and placed.max() <= 1 + 1e-9
    assert spread_labels([], 0.05).size == 0
