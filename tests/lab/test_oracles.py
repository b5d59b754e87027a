"""The oracles on webs whose best order is known.

Pages with a whale in their name are on topic.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from focused.errors import ConfigurationError
from focused.topic import Scope
from focused.topic.topic_file import load_topic
from focused.web.page import Classification, Page
from focused_lab.analysis import comparison_runs
from focused_lab.ground_truth import GroundTruth
from focused_lab.oracles import ORACLES
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.link_graph import open_link_graph
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import constant_latency, simulate
from tests.support.crawling import write_topic
from tests.support.recorded_web import html, page, record_web, redirect
from tests.support.whale_models import WhaleClassifier

Web = Mapping[str, Sequence[str] | str]

# The topic lies behind three off-topic pages; a wide off-topic region is nearer.
TUNNEL: Web = {
    "start": [*(f"dull-{n}" for n in range(6)), "door"],
    **{f"dull-{n}": [f"duller-{n}"] for n in range(6)},
    **{f"duller-{n}": [] for n in range(6)},
    "door": ["hall"],
    "hall": ["whale-1", "dull-1"],
    "whale-1": ["whale-2"],
    "whale-2": [],
}


class Examined:
    """A web on one host, except for names that are whole URLs; whales are its topic."""

    def __init__(self, folder: Path, web: Web, scope: Scope, closing: ExitStack) -> None:
        self._folder, self._scope = folder, scope
        pages = [
            redirect(address(name), address(links))
            if isinstance(links, str)
            else page(address(name), html(name, *map(address, links), text=f"about {name}"))
            for name, links in web.items()
        ]
        whales = [each.url for each in pages if each.status == 200 and "whale" in each.url]
        labels = [(url, "Top/Whales") for url in whales]
        record_web(folder / "web", *pages, labels=labels)
        self.network = closing.enter_context(ParsedWeb(RecordedWeb.open(folder / "web")))
        self.ground_truth = GroundTruth(
            self.network.web,
            ["Top/Whales"],
            (),
            graph=lambda: open_link_graph(self.network),
            scope=scope,
        )

    def asked(
        self, oracle: str, *seeds: str, classifier: WhaleClassifier | None = None
    ) -> list[str]:
        classifier = classifier or WhaleClassifier()
        politeness = "concurrency = 1\npatience = 0"
        topic = load_topic(write_topic(self._folder, "http://a.test/", politeness=politeness))
        run = simulate(
            replace(topic, scope=self._scope),
            classifier,
            self.network,
            ORACLES[oracle](self.ground_truth, classifier, self.network),
            latency=constant_latency(0.01),
            seeds=[address(name) for name in seeds],
        )
        return [url.rpartition("/")[2] for url in run.asked]


def address(name: str) -> str:
    return name if "://" in name else f"http://a.test/{name}"


@pytest.fixture
def run_trial(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as closing:

        def make(web: Web, **scope: Any) -> Examined:
            return Examined(tmp_path, web, Scope(**scope), closing)

        yield make


def test_the_greedy_oracle_takes_an_on_topic_link_whenever_it_holds_one(run_trial):
    web = {"start": ["dull", "whale-1"], "whale-1": ["whale-2"], "dull": [], "whale-2": []}
    assert run_trial(web).asked("oracle", "start") == ["start", "whale-1", "whale-2", "dull"]


def test_the_greedy_oracle_is_blind_to_what_lies_behind(run_trial):
    asked = run_trial(TUNNEL).asked("oracle", "start")
    assert asked.index("whale-1") > asked.index("dull-5")


def test_the_path_oracle_goes_straight_through_the_dull_pages(run_trial):
    asked = run_trial(TUNNEL).asked("path-oracle", "start")
    assert asked[:5] == ["start", "door", "hall", "whale-1", "whale-2"]
    assert len(asked) == len(TUNNEL)


def test_the_nearer_of_two_ways_comes_first(run_trial):
    web = {
        "start": ["long", "short"],
        "long": ["longer"],
        "longer": ["whale-far"],
        "short": ["whale-near"],
        "whale-far": [],
        "whale-near": [],
    }
    asked = run_trial(web).asked("path-oracle", "start")
    assert asked == ["start", "short", "whale-near", "long", "longer", "whale-far"]


def test_between_pages_one_click_away_the_one_that_leads_to_more_comes_first(run_trial):
    whales = ["whale-1", "whale-2", "whale-3"]
    web = {
        "start": ["poor", "rich"],
        "poor": ["whale-0"],
        "rich": whales,
        "whale-0": [],
        **{name: [] for name in whales},
    }
    asked = run_trial(web).asked("path-oracle", "start")
    assert asked == ["start", "rich", *whales, "poor", "whale-0"]


def test_what_leads_only_to_what_was_found_leads_nowhere(run_trial):
    menus = [f"menu-{n}" for n in range(5)]
    web = {
        "start": ["whale-1", *menus, "first"],
        **{name: ["whale-1"] for name in menus},
        "whale-1": [],
        "first": ["second"],
        "second": ["whale-2"],
        "whale-2": [],
    }
    asked = run_trial(web).asked("path-oracle", "start")
    assert asked == ["start", "whale-1", "first", "second", "whale-2", *menus]


def test_the_second_address_of_a_page_comes_last(run_trial):
    web = {
        "start": ["whale-1", "also-whale-1", "https://a.test/whale-1", "dull"],
        "also-whale-1": "whale-1",
        "whale-1": [],
        "dull": ["whale-2"],
        "whale-2": [],
    }
    asked = run_trial(web).asked("path-oracle", "start")
    assert asked[:4] == ["start", "whale-1", "dull", "whale-2"]


def test_a_page_first_met_through_a_redirect_keeps_its_place(run_trial):
    web = {
        "start": ["dull", "old"],
        "dull": [],
        "old": "middle",
        "middle": ["end"],
        "end": ["whale-1"],
        "whale-1": [],
    }
    asked = run_trial(web).asked("path-oracle", "start")
    assert asked == ["start", "old", "middle", "end", "whale-1", "dull"]


def test_ways_out_of_scope_do_not_count(run_trial):
    web = {
        "start": ["forbidden", "long"],
        "forbidden": ["whale-1"],
        "long": ["longer"],
        "longer": ["whale-2"],
        "whale-1": [],
        "whale-2": ["whale-1"],
    }
    asked = run_trial(web, deny_paths=("^/forbidden",)).asked("path-oracle", "start")
    assert asked == ["start", "long", "longer", "whale-2", "whale-1"]


def test_an_on_topic_page_that_stays_out_of_reach_is_not_waited_for(run_trial):
    full = [f"http://full.test/whale-{n}" for n in range(3)]
    dull = [f"http://dull-{n}.test/" for n in range(20)]
    web = {
        "start": ["old", *dull, "http://b.test/door"],
        "old": full[2],
        **{name: [] for name in full},
        **{name: ["http://d.test/whale-8"] for name in dull},
        "http://d.test/whale-8": [],
        "http://b.test/door": ["http://b.test/hall"],
        "http://b.test/hall": ["http://c.test/whale-9"],
        "http://c.test/whale-9": [],
    }
    asked = run_trial(web, max_pages_per_host=2).asked("path-oracle", *full[:2], "start")
    assert "whale-2" not in asked
    assert asked.index("whale-9") < len(asked) - 5


def reachable(examined: Examined, *seeds: str) -> int:
    return examined.ground_truth.count_reachable([address(name) for name in seeds])


def test_reachable_are_the_on_topic_pages_that_links_lead_to_the_seeds_included(run_trial):
    examined = run_trial(TUNNEL)
    assert reachable(examined, "start") == 2
    assert reachable(examined, "whale-2") == 1
    assert reachable(examined, "dull-1", "duller-2") == 0


def test_a_seed_that_redirects_reaches_what_its_target_reaches(run_trial):
    examined = run_trial({"old": "hall", "hall": ["whale-1"], "whale-1": []})
    assert reachable(examined, "old") == 1


def test_a_seed_outside_the_web_reaches_nothing(run_trial):
    assert reachable(run_trial({"whale-1": []}), "nowhere") == 0


def test_pages_behind_a_denied_path_cannot_be_reached(run_trial):
    web = {"start": ["forbidden"], "forbidden": ["whale-1"], "whale-1": []}
    assert reachable(run_trial(web, deny_paths=("^/forbidden",)), "start") == 0


def test_pages_deeper_than_the_scope_allows_cannot_be_reached(run_trial):
    assert reachable(run_trial(TUNNEL, max_depth=3), "start") == 1


def test_hot_pages_are_the_relevant_ones_with_the_median_of_links_or_more(run_trial):
    web = {
        "start": ["whale-1", "whale-2", "whale-3"],
        "other": ["whale-2", "whale-3", "dull"],
        "third": ["whale-3", "dull"],
        **{name: [] for name in ("whale-1", "whale-2", "whale-3", "dull")},
    }
    assert run_trial(web).ground_truth.hot_pages == {address("whale-2"), address("whale-3")}


def test_ground_truth_without_a_graph_names_the_missing_argument(run_trial):
    network = run_trial({"whale-1": []}).network
    ground_truth = GroundTruth(network.web, ["Top/Whales"], ())
    with pytest.raises(ConfigurationError, match="built without one: pass graph="):
        ORACLES["path-oracle"](ground_truth, WhaleClassifier(), network)


class DuckClassifier(WhaleClassifier):
    """Wrong about whales: accepts ducks instead."""

    def classify(self, page: Page) -> Classification:
        relevance = 0.9 if "duck" in page.title else 0.1
        return Classification(relevance, relevance >= self.threshold)


def test_the_classifier_oracle_follows_the_classifier_right_or_wrong(run_trial):
    web = {
        "start": ["missing", "dull", "whale-1", "moved", "duck-1"],
        "moved": "duck-2",
        **{name: [] for name in ("dull", "whale-1", "duck-1", "duck-2")},
    }
    asked = run_trial(web).asked("classifier-oracle", "start", classifier=DuckClassifier())
    ducks, others = asked[1:4], asked[4:]
    assert sorted(ducks) == ["duck-1", "duck-2", "moved"]
    # Only pages count, whatever their label.
    assert others.index("dull") < others.index("whale-1") < others.index("missing")


def test_the_analysis_knows_every_oracle_by_its_name():
    assert tuple(ORACLES) == comparison_runs.ORACLE_NAMES
