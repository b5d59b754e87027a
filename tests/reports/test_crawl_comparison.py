"""Comparison of finished crawls, and the plot of their curves."""

import struct
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from focused.errors import StateError
from focused.reports.crawl_plots import plot_harvest
from focused.reports.report_output import compare_crawls, print_comparison
from tests.support.crawl_folders import good_page, page, write_crawl

HOST = "http://a.example/"


def crawl(folder: Path, policy: str, flags: str) -> Path:
    """A crawl whose pages are on topic where ``flags`` has a plus."""
    rows = [
        (good_page if verdict == "+" else page)(f"{HOST}{place}")
        for place, verdict in enumerate(flags)
    ]
    settings = {"policy": policy, "topic": {"name": "t", "training": {"good": ["Top/X"]}}}
    return write_crawl(folder / policy / flags.replace("+", "p"), rows, settings=settings)


def test_crawls_are_compared_over_as_many_pages_as_the_shortest_has(tmp_path):
    focused, bfs = crawl(tmp_path, "focused", "+++-----"), crawl(tmp_path, "bfs", "+--.")
    first, last = compare_crawls([focused, bfs])
    assert (first.rate, first.rate_at_equal) == (0.375, 0.75)
    assert (last.rate_at_equal, last.ratio) == (0.25, 1.0)
    assert first.ratio == 3.0


def test_the_breadth_first_crawl_is_the_baseline_wherever_it_stands(tmp_path):
    folders = [crawl(tmp_path, "bfs", "+---"), crawl(tmp_path, "focused", "++--")]
    compared = compare_crawls(folders)
    assert [each.name for each in compared] == ["focused", "breadth-first"]
    assert [each.ratio for each in compared] == [2.0, 1.0]


def test_crawls_of_one_policy_are_named_for_their_folders(tmp_path):
    compared = compare_crawls([crawl(tmp_path, "focused", "+-"), crawl(tmp_path, "focused", "--")])
    assert [each.name for each in compared] == ["p-", "--"]


def test_there_is_no_ratio_to_a_baseline_that_found_nothing(tmp_path):
    compared = compare_crawls([crawl(tmp_path, "focused", "+-"), crawl(tmp_path, "bfs", "--")])
    assert [each.ratio for each in compared] == [None, None]


def test_labels_replace_the_classifiers_verdicts(tmp_path):
    folders = [crawl(tmp_path, "focused", "++"), crawl(tmp_path, "bfs", "--")]
    compared = compare_crawls(folders, labels={f"{HOST}1": ["Top/X/Y"]})
    assert [each.on_topic.tolist() for each in compared] == [[False, True]] * 2


def test_one_bad_folder_spoils_the_comparison_with_its_name(tmp_path):
    with pytest.raises(StateError, match="none: no such folder"):
        compare_crawls([crawl(tmp_path, "focused", "++"), tmp_path / "none"])


def test_the_comparison_is_printed_and_drawn(tmp_path):
    console = Console(width=120)
    folders = [crawl(tmp_path, "focused", "++--"), crawl(tmp_path, "bfs", "+---")]
    with console.capture() as capture:
        print_comparison(folders, console, tmp_path / "both.png")
    (row,) = [line for line in capture.get().splitlines() if "focused" in line and "│" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["focused", "4", "2", "50.0%", "50.0%", "2.00"]
    assert picture_size(tmp_path / "both.png") == (1152, 648)


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height from a PNG's header (RFC 2083, section 4.1.1)."""
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


@pytest.mark.parametrize("pages", [0, 1, 2, 100, 101, 5000])
def test_a_curve_of_any_length_is_drawn(tmp_path, pages):
    plot_harvest({"crawl": np.arange(pages) % 3 == 0}, tmp_path / "h.png", title="t")
    assert picture_size(tmp_path / "h.png") == (1152, 648)


def test_a_plot_without_crawls_is_drawn(tmp_path):
    plot_harvest({}, tmp_path / "h.png")
    assert picture_size(tmp_path / "h.png") == (1152, 648)


def test_names_are_never_taken_for_formulas(tmp_path):
    plot_harvest({r"$\nonsense": [True]}, tmp_path / "h.png", title=r"$\frac$")
    assert picture_size(tmp_path / "h.png") == (1152, 648)


def test_a_curve_is_seen_where_there_are_pages(tmp_path):
    plot_harvest({"crawl": [True, False] * 80}, tmp_path / "some.png")
    plot_harvest({"crawl": []}, tmp_path / "none.png")
    assert (tmp_path / "some.png").read_bytes() != (tmp_path / "none.png").read_bytes()
