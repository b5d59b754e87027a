"""The time profile of a session."""

from typing import Any

import pytest

from focused.reports.crawl_report import OTHER_STAGES, read_time_profile


def stats(cpu_s: float = 9.0, there_s: float = 0.0, **stages: float) -> dict[str, Any]:
    return {
        "profile": {
            "pages": 100,
            "elapsed_s": 10.0,
            "cpu_s": cpu_s,
            "stages": {"parsing": 1.0, "classifying": 1.0, "scoring": 2.0, **stages},
            "parser_processes": 1,
            "pages_parsed_in_processes": 25,
            "parser_process_s": there_s,
            "reactor_blocked": {"longest_s": 0.07, "times": 3, "threshold_s": 0.05},
        }
    }


def test_stages_have_time_per_page_and_share_slowest_first():
    spent = read_time_profile(stats())
    assert spent is not None
    stages = [tuple(each.values()) for each in spent["stages"]]
    assert stages == [
        (OTHER_STAGES, 50.0, pytest.approx(5 / 9)),
        ("scoring", 20.0, pytest.approx(2 / 9)),
        ("parsing", 10.0, pytest.approx(1 / 9)),
        ("classifying", 10.0, pytest.approx(1 / 9)),
    ]


def test_what_other_processes_did_is_not_taken_from_the_rest():
    spent = read_time_profile(stats(there_s=2.0))
    assert spent is not None
    assert spent["stages"][0]["ms_per_page"] == 70.0
    assert spent["parsed_elsewhere"] == 0.25


@pytest.mark.parametrize(
    ("cpu_s", "stages", "says"),
    [
        (1.0, {}, "the network"),
        (9.0, {}, f"{OTHER_STAGES} takes most"),
        (9.0, {"classifying": 5.0}, "parsing pages takes most"),
        (9.0, {"scoring": 5.0}, "scoring takes most"),
    ],
)
def test_the_bottleneck_is_named(cpu_s, stages, says):
    spent = read_time_profile(stats(cpu_s, **stages))
    assert spent is not None
    assert says in spent["bottleneck"]


@pytest.mark.parametrize("statistics", [{}, {"profile": {}}, {"profile": {"pages": 0}}])
def test_a_crawl_without_a_profile_has_none(statistics):
    assert read_time_profile(statistics) is None


def test_a_profile_of_another_version_is_passed_over():
    statistics = stats()
    del statistics["profile"]["parser_process_s"]
    assert read_time_profile(statistics) is None
