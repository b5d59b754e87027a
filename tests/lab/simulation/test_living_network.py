"""A simulated crawl gets the answers of a replay server of the same living web."""

from __future__ import annotations

from pathlib import Path

from focused.durations import DAY_S
from focused.web.page import Failed, Fetched, NotModified
from focused_lab.living_web.living_web import LivingWeb
from focused_lab.simulation.simulator import LivingNetwork
from tests.lab.living_web.test_living_web import CREATED, HOME, QUIET, START, histories, record


def test_it_answers_by_the_time_of_the_simulation(tmp_path: Path) -> None:
    with record(tmp_path / "web") as web:
        living = LivingWeb(web, histories(CREATED), QUIET)
        network = LivingNetwork(living, START)
        for day in (0, 200, 366):
            answer = network.answer(HOME, day * DAY_S, 0.1)
            response = living.response_at(HOME, START + day * DAY_S)
            assert isinstance(answer, Fetched)
            assert response is not None
            assert (answer.body, answer.headers) == (response.body, response.headers)
        assert isinstance(network.answer("https://other.example/", 0.0, 0.1), Failed)


def test_it_answers_conditional_requests(tmp_path: Path) -> None:
    with record(tmp_path / "web") as web:
        network = LivingNetwork(LivingWeb(web, histories(CREATED), QUIET), START)
        first = network.answer(HOME, 0.0, 0.1)
        assert isinstance(first, Fetched)
        headers = {"if-modified-since": first.headers["last-modified"]}
        assert isinstance(network.answer(HOME, DAY_S, 0.1, headers), NotModified)
