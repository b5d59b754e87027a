"""Online training, and scoring queued links again."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from focused.crawl import online_training
from focused.crawl.online_training import OnlineTraining
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import Exploration, QueuedLink, link_key, unproductive_after
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.link_features import FEATURE_INDEX
from focused.link_scoring.protocols import PageContext, decode_example
from focused.web.page import Classification, Failed, FailureKind, Page
from focused.web.urls import host_of
from tests.support.archived_links import link_rows
from tests.support.simple_learner import SimpleLearner
from tests.support.simulated import Simulation, moved, page, raw, site, topic
from tests.support.whale_models import TemperedWhaleClassifier, WhaleClassifier, WhaleScorer

A = "http://a.test/"


def web() -> dict[str, Any]:
    return site(
        page(A, "/whale", "/trade", "/copy", "/moved", "/gone"),
        page(A + "whale", text="whale"),
        page(A + "trade", text="trade"),
        page(A + "copy", text="trade", title="http://a.test/trade"),
        moved(A + "moved", A + "end"),
        page(A + "end", text="the end"),
        Failed(A + "gone", FailureKind.GONE, 404),
    )


def wide_web(pages: int = 40) -> dict[str, Any]:
    """Pages on two hosts; every third speaks of whales, each links to the next and further on."""
    urls = [f"http://{'ab'[n % 2]}.test/{n}" for n in range(pages)]
    answers = []
    for n, url in enumerate(urls):
        near = [urls[(n * k + 1) % pages] for k in (1, 2, 3)]
        text = f"whale number {n}" if n % 3 == 0 else f"trade number {n}"
        answers.append(page(url, *near, text=text))
    return site(page(A, *urls[:2], text="start"), *answers)


# Taught


def test_each_classified_page_is_trained_on_once_and_duplicates_are_not(simulate, tmp_path):
    learner = SimpleLearner()
    simulate(topic(tmp_path, A), web(), scorer=learner).run()
    taught = [url for url, _, _ in learner.examples]
    assert sorted(taught) == [A, A + "end", A + "trade", A + "whale"]
    assert {url: relevance for url, _, relevance in learner.examples}[A + "whale"] == 0.9


def test_pages_are_written_in_the_order_in_which_they_were_settled(simulate, tmp_path):
    learner = SimpleLearner()
    done = simulate(topic(tmp_path, A), wide_web(), scorer=learner).run()
    fetched = [row["url"] for row in done.rows.values() if row["outcome"] == "fetched"]
    assert [url for url, _, _ in learner.examples] == fetched


def test_a_page_is_predicted_before_it_is_learned_from(simulate, tmp_path):
    """Nothing that a page taught is in the score it is on record with."""
    learned_at_scoring: dict[str, list[str]] = {}

    class Watched(SimpleLearner):
        def new_score(self, link):
            learned_at_scoring[link.url] = list(self.learned_here)
            return super().new_score(link)

    simulate(topic(tmp_path, A), wide_web(), scorer=Watched()).run()
    assert len(learned_at_scoring) >= 40
    assert all(url not in learned for url, learned in learned_at_scoring.items())


def test_a_pages_links_are_scored_before_the_page_is_learned_from(simulate, tmp_path):
    """So that a link's prediction does not depend on whether a crash came between."""
    learned: list[bool] = []

    class Watched(SimpleLearner):
        def score_merged(self, visit, links, waiting):
            learned.append(visit.page.url in self.learned_here)
            return super().score_merged(visit, links, waiting)

    simulate(topic(tmp_path, A), wide_web(), scorer=Watched()).run()
    assert learned
    assert not any(learned)


def test_a_page_that_could_not_be_classified_trains_nothing(simulate, tmp_path):
    """Its relevance is the topic's prior: nobody has read it."""

    class Shortsighted(WhaleClassifier):
        def classify(self, page):
            classified = super().classify(page)
            return dataclasses.replace(classified, known="whale" in page.url)

    learner = SimpleLearner()
    done = simulate(topic(tmp_path, A), web(), classifier=Shortsighted(), scorer=learner).run()
    assert [url for url, _, _ in learner.examples] == [A + "whale"]
    assert done.crawl.frontier.hosts.get("a.test").unproductive > 2.0


def test_a_learner_that_breaks_over_a_page_does_not_stop_the_crawl(simulate, tmp_path, caplog):
    class Brittle(SimpleLearner):
        def learn(self, example):
            if example.url.endswith("trade"):
                raise ValueError("no trade")
            super().learn(example)

        def new_score(self, link):
            if link.url.endswith("whale"):
                raise ValueError("no whale")
            return super().new_score(link)

    learner = Brittle()
    done = simulate(topic(tmp_path, A), web(), scorer=learner).run()
    assert len(set(done.urls)) == 7
    assert A + "whale" in [url for url, _, _ in learner.examples]
    assert A + "trade" not in [url for url, _, _ in learner.examples]
    assert done.store.tables.count("training_examples") == len(learner.examples)
    assert "could not be used for training" in caplog.text
    assert "could not be scored again" in caplog.text


def test_a_scorer_that_does_not_learn_leaves_no_training_examples(simulate, tmp_path):
    done = simulate(topic(tmp_path, A), web(), scorer=WhaleScorer()).run()
    assert (
        done.store.tables.count("training_examples") == done.store.tables.count("scorer_state") == 0
    )


def test_where_a_redirect_led_is_learned_with_what_was_known_of_its_link(simulate, tmp_path):
    taught: dict[str, Any] = {}

    class Watched(SimpleLearner):
        def learn(self, example):
            taught[example.url] = example
            super().learn(example)

    simulate(topic(tmp_path, A), web(), scorer=Watched()).run()
    led = taught[A + "end"]
    assert led.anchor == "/moved"
    assert led.features == taught[A + "trade"].features
    assert led.tag_path_key == taught[A + "whale"].tag_path_key == 7


def test_a_link_that_a_driver_queues_keeps_its_place_on_the_page(simulate, tmp_path):
    begun = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=1)
    (home,) = begun.settled
    found, key = home.scored[A + "whale"], link_key("the driver's own")
    begun.crawl.enqueue_url(A + "whale", 0.5, begun.now, key=key, parent=home, found=found)
    assert begun.crawl.frontier.lookup_links([("a.test", key)]).waiting[key].tag_path_key == 7


def test_a_link_that_a_driver_queues_keeps_its_rank_score(simulate, tmp_path):
    """Hopeless links are told apart by their rank_score, where their scores are next to nothing."""
    begun = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=1)
    (home,) = begun.settled
    found = structs.replace(home.scored[A + "whale"], rank_score=-9.0, score=0.0001)
    key = link_key("the driver's own")
    begun.crawl.enqueue_url(A + "whale", 0.5, begun.now, key=key, parent=home, found=found)
    assert begun.crawl.frontier.lookup_links([("a.test", key)]).waiting[key].priority == -9.0


def waiting_with(begun: Simulation, key: bytes, **changes: float) -> QueuedLink:
    """The link of that key, which waits, with other features."""
    frontier = begun.crawl.frontier
    waits = frontier.lookup_links([("a.test", key)]).waiting[key]
    features = list(waits.features)
    for name, value in changes.items():
        features[FEATURE_INDEX[name]] = value
    waits = structs.replace(waits, features=tuple(features))
    frontier.push(waits, begun.now, joined=True)
    return waits


@pytest.mark.parametrize(
    ("in_links", "rises", "is_written"), [(8, 0.01, False), (8, 1.0, True), (7, 0.01, True)]
)
def test_a_link_that_eight_pages_led_to_is_written_again_only_where_it_moves(
    simulate, tmp_path, in_links, rises, is_written
):
    begun = simulate(topic(tmp_path, A), web(), scorer=Apprentice(WhaleClassifier())).run(pages=1)
    (home,) = begun.settled
    frontier, key = begun.crawl.frontier, link_key(A + "trade")
    waits = waiting_with(begun, key, in_links=in_links)
    features = list(waits.features)
    features[FEATURE_INDEX["url"]] += 0.5
    again = structs.replace(
        home.scored[A + "trade"],
        features=tuple(features),
        rank_score=waits.priority + rises,
        before=waits,
    )
    begun.crawl.enqueuer.queue(home.link, {A + "trade": again}, waits.depth, begun.now)
    left = frontier.lookup_links([("a.test", key)]).waiting[key]
    assert (left != waits) is is_written


@pytest.mark.parametrize(("in_links", "parent", "is_scored"), [(8, 4.0, False), (8, -4.0, True)])
def test_a_link_that_eight_pages_led_to_is_scored_again_only_for_a_more_relevant_page(
    simulate, tmp_path, in_links, parent, is_scored
):
    begun = simulate(topic(tmp_path, A), web(), scorer=Apprentice(WhaleClassifier())).run(pages=1)
    (home,) = begun.settled
    waits = waiting_with(begun, link_key(A + "trade"), in_links=in_links, parent=parent)
    visit = PageContext(home.page, home.classification)
    found = begun.crawl.enqueuer.score(visit, waits.depth)
    assert list(found) == list(home.scored)
    link = found[A + "trade"]
    assert ((link.features, link.score) != (waits.features, waits.score)) is is_scored


def test_seeds_come_before_the_best_of_links(simulate, tmp_path):
    class Sure(SimpleLearner):
        def score_merged(self, visit, links, waiting):
            scored = super().score_merged(visit, links, waiting)
            return [structs.replace(each, rank_score=each.rank_score + 8.0) for each in scored]

    answers = site(page(A, "/whale"), page(A + "whale"), page(A + "seed"))
    done = simulate(topic(tmp_path, A, A + "seed"), answers, scorer=Sure()).run()
    assert done.urls == [A, A + "seed", A + "whale"]


def test_a_host_that_only_redirects_uses_its_bonus_up(simulate, tmp_path):
    answers = site(page(A, "/moved"), moved(A + "moved", "http://b.test/"), page("http://b.test/"))
    done = simulate(topic(tmp_path, A), answers, scorer=SimpleLearner()).run()
    host = done.crawl.frontier.hosts.get("a.test")
    assert (host.asked, host.fetched) == (2, 1)


# Examples handed over


def test_a_crawl_that_shares_its_examples_leaves_training_to_others(simulate, tmp_path):
    learner, rows = SimpleLearner(), []
    done = simulate(topic(tmp_path, A), web(), scorer=learner, share_example=rows.append).run()
    assert sorted(decode_example(row).url for row in rows) == sorted(
        [A, A + "end", A + "trade", A + "whale"]
    )
    assert learner.examples == []
    tables = done.store.tables
    assert tables.count("training_examples") == tables.count("scorer_state") == 0


def test_a_shared_example_is_the_one_that_a_single_crawl_trains_on(simulate, tmp_path):
    rows: list[bytes] = []
    simulate(
        topic(tmp_path / "a", A), web(), scorer=SimpleLearner(), share_example=rows.append
    ).run()
    alone = simulate(topic(tmp_path / "b", A), web(), scorer=SimpleLearner()).run()
    assert rows == [row for _, row in alone.store.tables.scan("training_examples")]


def test_a_crawl_that_shares_its_examples_restores_nothing(simulate, tmp_path):
    """Its folder may have been another owner's, whose scorer learned from less."""
    begun = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=3)
    begun.scorer = learner = SimpleLearner()
    begun.share_example = lambda row: None
    begun.restart()
    assert learner.examples == []


def test_a_crawl_that_shares_its_examples_scores_links_again(simulate, tmp_path):
    learner = SimpleLearner({A + "whale": 0.01})
    done = simulate(topic(tmp_path, A), web(), scorer=learner, share_example=lambda row: None).run()
    assert done.urls[-1] == A + "whale"
    assert done.rows[A + "whale"]["score"] == 0.01


def test_an_example_that_cannot_be_shared_does_not_stop_the_crawl(simulate, tmp_path, caplog):
    def refuse(row: bytes) -> None:
        raise ValueError("no room")

    done = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner(), share_example=refuse).run()
    assert len(set(done.urls)) == 7
    assert "could not be used for training" in caplog.text


# Asked again


def test_a_link_that_is_ranked_lower_by_now_gives_way(simulate, tmp_path):
    learner = SimpleLearner({A + "whale": 0.01})
    done = simulate(topic(tmp_path, A), web(), scorer=learner).run()
    assert done.urls[-1] == A + "whale"
    assert done.rows[A + "whale"]["score"] == 0.01


def test_a_link_that_may_not_be_requested_is_not_scored_again(simulate, tmp_path):
    asked = []

    class Listening(SimpleLearner):
        def new_score(self, link):
            asked.append(link.url)
            return super().new_score(link)

    rules = raw(A + "robots.txt", "User-agent: *\nDisallow: /whale\n", "text/plain")
    done = simulate(topic(tmp_path, A), web() | site(rules), scorer=Listening()).run()
    assert done.crawl.counters.robots_excluded == 1
    assert A + "trade" in asked
    assert A + "whale" not in asked


def test_tempered_relevances_change_what_is_on_record_and_not_the_order(simulate, tmp_path):
    plain, tempered = (
        simulate(
            topic(tmp_path / name, A),
            wide_web(80),
            classifier=classifier,
            scorer=Apprentice(WhaleClassifier()),
        ).run()
        for name, classifier in (
            ("plain", WhaleClassifier()),
            ("tempered", TemperedWhaleClassifier()),
        )
    )
    assert tempered.urls == plain.urls
    rows = [(plain.rows[url], tempered.rows[url]) for url in plain.urls]
    assert {other["relevance"] for _, other in rows} == {0.6, 0.3}
    for name in ("on_topic", "features"):
        assert [other[name] for _, other in rows] == [one[name] for one, _ in rows]
    scores = [(one["score"], other["score"]) for one, other in rows]
    assert all(one == other for one, other in scores[:25])
    assert any(one != other for one, other in scores[25:])


def test_scores_are_calibrated_on_record_and_not_in_the_frontier(simulate, tmp_path):
    """Priorities follow from the scores in the frontier, also where a redirect leads."""

    class Calibrated(SimpleLearner):
        def calibrate_scores(self, scores):
            return [score / 2.0 for score in scores]

    plain = simulate(topic(tmp_path / "plain", A), web(), scorer=SimpleLearner()).run()
    halved = simulate(topic(tmp_path / "halved", A), web(), scorer=Calibrated()).run()
    assert halved.urls == plain.urls
    rows = halved.rows
    assert rows.pop(A)["score"] == 1.0  # nobody predicted the seed
    halves = {url: plain.rows[url]["score"] / 2.0 for url in rows}
    assert {url: row["score"] for url, row in rows.items()} == pytest.approx(halves)
    assert {each.link.url: each.link.score for each in halved.settled[1:]} == pytest.approx(halves)
    found = {row["target"]: row["score"] for row in link_rows(halved.store.tables)}
    assert found[A + "trade"] == pytest.approx(halves[A + "trade"])


def test_a_link_that_is_ranked_higher_by_now_goes_in_its_turn(simulate, tmp_path):
    learner = SimpleLearner({A + "whale": 0.99})
    done = simulate(topic(tmp_path, A), web(), scorer=learner).run()
    assert done.urls[1] == A + "whale"
    assert done.rows[A + "whale"]["score"] == 0.99


def test_a_link_that_is_ranked_higher_by_now_comes_up_with_its_hosts_next_refreshment(
    simulate, tmp_path
):
    """Its turn would not come: at the top of the queue nobody asks for it."""
    names = [*map(str, range(40)), "last"]
    answers = site(page(A, *names), *(page(A + name) for name in names))
    plain = simulate(topic(tmp_path / "plain", A), answers, scorer=SimpleLearner()).run()
    assert plain.urls[-1] == A + "last"
    done = simulate(
        topic(tmp_path / "risen", A), answers, scorer=SimpleLearner({A + "last": 0.99})
    ).run()
    assert done.urls[:25] == plain.urls[:25]
    assert done.urls[25] == A + "last"
    assert done.rows[A + "last"]["score"] == 0.99


def test_a_link_that_is_ranked_lower_by_now_keeps_its_place_until_it_is_offered(simulate, tmp_path):
    names = list(map(str, range(40)))
    answers = site(page(A, *names), *(page(A + name) for name in names))
    learner = SimpleLearner({A + "38": 0.01})
    begun = simulate(topic(tmp_path, A), answers, scorer=learner).run(pages=30)
    frontier = begun.crawl.frontier
    waiting = {link.url: link.score for link in frontier.waiting(frontier.hosts.get("a.test"))}
    assert waiting[A + "38"] == waiting[A + "37"] > 0.01
    done = begun.restart().run()
    assert done.urls[-1] == A + "38"
    assert done.rows[A + "38"]["score"] == 0.01


def test_links_of_a_host_of_many_pages_are_scored_again_more_seldom(tables, monkeypatch):
    frontier = DiskFrontier(tables)
    training = OnlineTraining(Policy("learner", SimpleLearner()), frontier, tables)
    host = frontier.hosts.get("a.test")
    scored: dict[int, range] = {}
    monkeypatch.setattr(
        frontier, "rescore_best", lambda host, _, ranks, now: scored.setdefault(host.fetched, ranks)
    )
    for host.fetched in range(2_001):
        training.refresh(host, 0.0)
    assert [ranks for pages, ranks in scored.items() if 25 <= pages < 50] == [
        range(first, first + 100) for first in range(0, 500, 100)
    ]
    of_the_best = [pages for pages, ranks in scored.items() if ranks.start == 0]
    assert of_the_best == [*range(25, 500, 25), *range(500, 1_000, 50), *range(1_000, 2_001, 100)]


def test_scores_that_fall_again_and_again_do_not_stop_a_crawl(simulate, tmp_path):
    class Melancholic(SimpleLearner):
        asked = 0

        def new_score(self, link):
            self.asked += 1
            self.new_scores[link.url] = 0.5 - 0.03 * self.asked
            return super().new_score(link)

    done = simulate(topic(tmp_path, A), web(), scorer=Melancholic()).run()
    assert len(set(done.urls)) == 7


def test_a_link_found_under_another_scorer_keeps_its_score(simulate, tmp_path):
    class OtherFeatures(SimpleLearner):
        feature_names = ("anchor", "parent", "depth")

    begun = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run(pages=1)
    begun.scorer = OtherFeatures({A + "whale": 0.01})
    done = begun.restart().run()
    assert done.rows[A + "whale"]["score"] > 0.5


# Told more of a link that waits


def test_a_link_that_waits_is_scored_with_what_each_page_reported(simulate, tmp_path):
    answers = site(
        page(A, "/one", "/other", "/late"),
        page(A + "one", "/late", text="of a whale"),
        page(A + "other", text="else"),
        page(A + "late", text="late"),
    )
    learner = SimpleLearner()
    done = simulate(topic(tmp_path, A), answers, scorer=learner).run()
    assert (A + "late", A) in learner.joined
    assert done.rows[A + "late"]["parent"] == A + "one"
    assert done.rows[A + "late"]["score"] == pytest.approx(0.3 * 0.9)
    assert done.urls == [A, A + "one", A + "late", A + "other"]


def test_a_poorer_page_that_links_later_does_not_stand_for_a_link(simulate, tmp_path):
    answers = site(
        page(A, "/one", "/late", text="of a whale"),
        page(A + "one", "/late"),
        page(A + "late", text="late"),
    )
    learner = SimpleLearner()
    done = simulate(topic(tmp_path, A), answers, scorer=learner).run()
    assert (A + "late", A) in learner.joined
    assert done.rows[A + "late"]["parent"] == A


def test_a_seed_that_a_page_links_to_stays_a_seed(simulate, tmp_path):
    answers = site(
        page(A, "/seed", "/whale"), page(A + "seed", text="seed"), page(A + "whale", text="whale")
    )
    done = simulate(topic(tmp_path, A, A + "seed"), answers, scorer=SimpleLearner()).run()
    assert done.urls == [A, A + "seed", A + "whale"]
    assert done.rows[A + "seed"]["depth"] == 0
    assert done.rows[A + "seed"]["score"] == 1.0


def test_a_hosts_pages_are_counted_as_they_were_classified(simulate, tmp_path):
    """Duplicates and failures count 0, whatever the classifier says; a redirect is no page."""
    done = simulate(topic(tmp_path, A), web(), scorer=SimpleLearner()).run()
    unproductive = 0.0
    for row in done.rows.values():
        if row["outcome"] != "redirected":
            brings = row["outcome"] == "fetched" and row["duplicate_of"] is None
            unproductive = unproductive_after(unproductive, row["relevance"] if brings else 0.0)
    host = done.crawl.frontier.hosts.get("a.test")
    assert (host.fetched, host.unproductive) == (5, pytest.approx(unproductive))
    assert unproductive > 0.5


def test_a_host_that_answers_nothing_but_errors_is_left_for_another(simulate, tmp_path):
    gone = [f"http://gone.test/{n}" for n in range(30)]
    there = [f"http://there.test/{n}" for n in range(30)]
    answers = site(
        page(A, *gone, *there),
        *(Failed(url, FailureKind.GONE, 404) for url in gone),
        *(page(url, text=url) for url in there),
    )
    done = simulate(
        topic(tmp_path, A), answers, scorer=SimpleLearner(), exploration=Exploration(3.0, 1.0)
    ).run()
    asked = [host_of(url) for url in done.urls[1:21]]
    assert 5 <= asked.count("gone.test") <= 15


# Kept


def test_after_a_restart_it_is_trained_again_to_the_same_state(simulate, tmp_path):
    learner = SimpleLearner()
    begun = simulate(topic(tmp_path, A), web(), scorer=learner).run(pages=3)
    before = list(learner.examples)
    assert len(before) >= 2
    begun.scorer = learner = SimpleLearner()
    begun.restart()
    assert learner.examples == before
    begun.run()
    assert [url for url, _, _ in learner.examples].count(A + "whale") == 1


def settled(number: int) -> SettledFetch:
    url = f"http://a.test/{number}"
    link = QueuedLink(link_key(url), url, "a.test", 0.5, 0.5, features=(0.0, 0.1))
    return SettledFetch(link, "fetched", page=Page(url), classification=Classification(0.9, True))


def test_training_examples_are_kept_until_the_state_is_every_so_many(tables):
    kept = OnlineTraining(Policy("learner", SimpleLearner()), DiskFrontier(tables), tables)
    rows = []
    for number in range(4_203):
        kept.learn(settled(number))
        rows.append(tables.count("training_examples"))
    assert rows[:2_000] == [*range(1, 2_000), 0]
    assert max(rows) == 1_999
    assert rows[-1] == 203
    again = SimpleLearner()
    OnlineTraining(Policy("learner", again), DiskFrontier(tables), tables)
    assert [url for url, _, _ in again.examples] == [f"http://a.test/{n}" for n in range(4_203)]
    assert len(again.learned_here) == 203  # the others came with the state


def story(crawl: Simulation) -> list[tuple[Any, ...]]:
    """What was fetched, in order, by which prediction, and by which features."""
    return [
        (row["url"], row["outcome"], row["score"], row["parent"], row["features"])
        for row in crawl.rows.values()
    ]


def apprentice_of(crawl: Simulation) -> Apprentice:
    assert isinstance(crawl.scorer, Apprentice)
    return crawl.scorer


@pytest.fixture
def kept_every_seven(monkeypatch):
    monkeypatch.setattr(online_training, "_EXAMPLES_PER_SNAPSHOT", 7)


@pytest.mark.usefixtures("kept_every_seven")
@pytest.mark.parametrize("pages", [1, 6, 7, 8, 30])
def test_a_restarted_crawl_predicts_what_one_without_a_break_would(pages, simulate, tmp_path):
    whole, halved = (
        simulate(topic(tmp_path / name, A), wide_web(), scorer=Apprentice(WhaleClassifier()))
        for name in ("whole", "halved")
    )
    halved.run(pages=pages)
    halved.scorer = Apprentice(WhaleClassifier())
    halved.restart().run()
    assert story(halved) == story(whole.run())
    assert apprentice_of(halved).state() == apprentice_of(whole).state()


@pytest.fixture(scope="module")
def without_a_crash(tmp_path_factory) -> tuple[list[tuple[Any, ...]], bytes]:
    """The story of a crawl of the wide web without delays, and what its learner knows."""
    whole = crawl_without_delays(tmp_path_factory.mktemp("whole")).run()
    ended = story(whole), apprentice_of(whole).state()
    whole.close()
    return ended


def crawl_without_delays(folder: Path) -> Simulation:
    return Simulation(topic(folder, A, delay_s=0), wide_web(), scorer=Apprentice(WhaleClassifier()))


@pytest.mark.usefixtures("kept_every_seven")
@pytest.mark.parametrize("commit", range(1, 44))
def test_a_crash_costs_the_learner_nothing_but_the_page_that_it_cut_short(
    commit, without_a_crash, tmp_path
):
    # Without delays: after a crash a host may be asked at another time, and so in another order.
    crashed = crawl_without_delays(tmp_path)
    crashed.crash_at_commit(commit, new_scorer=lambda: Apprentice(WhaleClassifier())).run()
    assert (story(crashed), apprentice_of(crashed).state()) == without_a_crash
    crashed.close()


def test_training_examples_of_odd_text_are_read_back_as_they_were_written(simulate, tmp_path):
    odd = A + "odd"
    answers = site(page(A, odd, text="x"), page(odd, title="&#xd83d; broken &#0; 名前", text="é"))
    begun = simulate(topic(tmp_path, A), answers, scorer=Apprentice(WhaleClassifier())).run()
    before = apprentice_of(begun).state()
    begun.scorer = Apprentice(WhaleClassifier())
    begun.restart()
    assert apprentice_of(begun).state() == before
