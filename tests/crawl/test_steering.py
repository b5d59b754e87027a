"""Commands of an operator to a running crawl."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from focused.crawl.steering import (
    Action,
    AddSeeds,
    ChangeBudget,
    ChangeDelay,
    Command,
    ControlFolder,
    DropLinks,
    MoveLinks,
    Pause,
    SteeringResult,
    decode_command,
    execute,
)
from focused.errors import ConfigurationError
from focused.topic import Budget
from tests.support.simulated import Simulation, page, site, topic

A, B = "http://a.test/", "http://b.test/"


OpenCrawl = Callable[..., Simulation]


@pytest.fixture
def crawl(tmp_path: Path, simulate: OpenCrawl) -> OpenCrawl:
    """Open a crawl that has fetched its seed, which links to two pages of each of two hosts."""

    def open_crawl(**sections: Any) -> Simulation:
        links = [f"{host}{number}" for host in (A, B) for number in (1, 2)]
        web = site(page(A, *links), *(page(each) for each in links), page("http://c.test/"))
        return simulate(topic(tmp_path, A, **sections), web).run(pages=1)

    return open_crawl


def steered(simulation: Simulation, command: Command) -> SteeringResult:
    steps: Generator[None, None, SteeringResult] = execute(
        simulation.crawl, command, lambda: simulation.now
    )
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: SteeringResult = finished.value
            return result


def urls_in_order(simulation: Simulation) -> list[str]:
    before = len(simulation.asked)
    simulation.run()
    return [url for _, url in simulation.asked[before:] if "robots" not in url]


def test_added_seeds_are_fetched_before_all_other_links(crawl):
    simulation = crawl()
    result = steered(simulation, AddSeeds(("http://c.test/", A)))
    assert result.message == "added 1 link; 1 refused: fetched, failed or dropped before"
    assert urls_in_order(simulation)[0] == "http://c.test/"


def test_adding_seeds_is_undone_by_dropping_them(crawl):
    simulation = crawl()
    undo = steered(simulation, AddSeeds(("http://c.test/",))).undo
    assert undo is not None
    assert steered(simulation, undo).message == "dropped 1 link"
    assert "http://c.test/" not in urls_in_order(simulation)


def test_dropped_links_are_not_fetched(crawl):
    simulation = crawl()
    assert steered(simulation, DropLinks(host="b.test")).message == "dropped 2 links"
    assert steered(simulation, DropLinks(matching="/1$")).message == "dropped 1 link"
    assert urls_in_order(simulation) == [f"{A}2"]


def test_boosted_links_come_first_and_the_boost_can_be_undone(crawl):
    simulation = crawl()
    result = steered(simulation, MoveLinks(5.0, host="b.test", matching="2$"))
    assert result.message == "moved 1 link by +5"
    assert result.undo == MoveLinks(-5.0, host="b.test", matching="2$")
    assert urls_in_order(simulation)[0] == f"{B}2"


def test_a_smaller_budget_ends_the_crawl_sooner(crawl):
    simulation = crawl(budget=Budget(pages=5, hours=2.0))
    result = steered(simulation, ChangeBudget(pages=2))
    assert result == SteeringResult("the budget is 2 pages", ChangeBudget(pages=5, hours=2.0))
    assert len(urls_in_order(simulation)) == 1
    assert simulation.ended == "page budget spent"


def test_a_longer_delay_holds_from_the_next_response_on(crawl):
    simulation = crawl()
    assert steered(simulation, ChangeDelay(30.0)).undo == ChangeDelay(1.0)
    simulation.run()
    times = [at for at, url in simulation.asked if url.startswith(B)]
    assert times[-1] - times[-2] >= 30.0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (ChangeDelay(0.5), "delay_s: 0.5 is below 1"),
        (ChangeDelay(float("nan")), "delay_s: nan"),
        (ChangeBudget(pages=0), "pages: 0 is not above 0"),
        (DropLinks(), "select links"),
        (DropLinks(host="z.test"), "does not know a host 'z.test'"),
        (DropLinks(matching="("), "not a regular expression"),
        (MoveLinks(float("inf"), host="a.test"), "by: inf"),
        (AddSeeds(()), "name 1 to"),
        (Pause(), "driver"),
    ],
)
def test_what_cannot_be_executed_is_refused_and_changes_nothing(crawl, command, message):
    simulation = crawl()
    queued = len(simulation.crawl.frontier)
    with pytest.raises(ConfigurationError, match=message):
        steered(simulation, command)
    assert len(simulation.crawl.frontier) == queued


def test_a_large_edit_yields_so_that_the_crawl_goes_on(crawl):
    simulation = crawl()
    many = AddSeeds(tuple(f"http://c.test/{number}" for number in range(450)))
    steps = execute(simulation.crawl, many, lambda: simulation.now)
    assert len(list(steps)) == 3


NESTED = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    "raw", ["{}", '{"action": "fly"}', '{"action": "drop-links", "hots": "a"}', "[", "\xff", NESTED]
)
def test_commands_that_are_none_are_refused(raw):
    with pytest.raises(ConfigurationError, match="no command"):
        decode_command(raw)


# The control folder


def test_commands_are_taken_once_in_the_order_of_sending(tmp_path):
    control = ControlFolder(tmp_path)
    sent = [control.send(Pause(), by="me", now=at) for at in (9.0, 10.0, 11.0)]
    assert [each.id for each in control.take()] == sent
    assert list(control.take()) == []


@pytest.mark.parametrize("content", ["{", NESTED])
def test_files_that_are_no_commands_are_removed(content, tmp_path):
    control = ControlFolder(tmp_path)
    control.send(Pause(), by="me", now=1.0)
    (bad := tmp_path / "control" / "commands" / "0.json").write_text(content)
    assert [each.command for each in control.take()] == [Pause()]
    assert not bad.exists()


def test_actions_are_logged_and_a_line_cut_off_by_a_crash_is_skipped(tmp_path):
    control = ControlFolder(tmp_path)
    action = Action("1", 2.0, "me", AddSeeds((A,)), "added 1 link", undo=DropLinks(urls=(A,)))
    control.log(action)
    with (tmp_path / "control" / "actions.jsonl").open("a") as file:
        file.write('{"id": "2", "at"')
    assert control.read_actions(10) == [action]


def test_the_status_is_for_whoever_watches(tmp_path):
    control = ControlFolder(tmp_path)
    assert not control.is_watched(0.0)
    assert control.read_status() is None
    control.watch()
    watched_at = (tmp_path / "control" / "watched").stat().st_mtime
    assert control.is_watched(watched_at + 14.0)
    assert not control.is_watched(watched_at + 16.0)
    control.write_status({"pages": 3})
    assert control.read_status() == {"pages": 3}
