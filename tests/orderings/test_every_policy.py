"""What every policy must guarantee."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.orderings import PolicyInputs, find_policy, ordering_names
from focused.orderings.policy_names import ABLATION_PREFIX
from focused.topic.topic_file import load_topic
from focused.web.page import Classification, Link, Page
from focused_lab.simulation.simulator import RecordedNetwork, SimulatedRun, hashed_latency, simulate
from tests.support.crawling import write_topic
from tests.support.recorded_web import MemoryWeb, answer, html, page, redirect
from tests.support.whale_models import WhaleClassifier, WhaleScorer

START = "http://a.test/"
SEEDS = (START, "http://e.test/moved-seed")
each_policy = pytest.mark.parametrize("name", ordering_names())


def web() -> MemoryWeb:
    """Two hundred pages on five hosts, with everything that can go wrong with a link."""
    pages = [
        page("http://a.test/robots.txt", "User-agent: *\nDisallow: /secret/\n"),
        page("http://a.test/secret/x", html("Secret")),
        redirect("http://c.test/moved", "http://d.test/whale-moved"),
        redirect("http://c.test/circle", "http://c.test/circle"),
        redirect("http://c.test/outward", "http://gone.test/outward"),
        redirect("http://e.test/moved-seed", "http://e.test/seed"),
        page("http://e.test/seed", html("A seed that moved", "/behind-seed")),
        page("http://e.test/behind-seed", html("Behind the seed", text="whale behind")),
        page("http://d.test/whale-moved", html("Moved", "/behind", START, text="whale, moved")),
        page("http://d.test/behind", html("Behind a redirect", text="a whale behind it")),
        page("http://d.test/stub", b'<meta http-equiv="refresh" content="0; url=/refreshed">'),
        page("http://d.test/refreshed", html("Refreshed", "/behind-stub", text="refreshed")),
        page("http://d.test/behind-stub", html("Behind a stub", text="whale, refreshed")),
        page("http://d.test/empty", html("No links", text="nothing further")),
        answer("http://d.test/broken", 200, b"\x89PNG\r\n\x1a\n", content_type="image/png"),
        answer("http://d.test/busy", 503),
    ]
    odd = [
        "http://a.test/secret/x",
        "http://c.test/moved",
        "http://c.test/circle",
        "http://c.test/outward",
        "http://d.test/stub",
        "http://d.test/empty",
        "http://d.test/broken",
        "http://d.test/busy",
        "http://a.test/missing",
        "http://gone.test/",
    ]
    ring = [f"http://{'abcde'[n % 5]}.test/{'whale' if n % 3 else 'trade'}-{n}" for n in range(180)]
    for n, url in enumerate(ring):
        near = [ring[(n * 2 + k) % 180] for k in (1, 2, 3)]
        text = f"page {n} of the {'whale' if n % 4 else 'harbour'}"
        pages.append(page(url, html(f"Page {n}", *near, odd[n % len(odd)], START, text=text)))
    pages.append(page(START, html("Start", *ring[:4], *odd, "/copy-1", "/copy-2", text="harbour")))
    pages += [page(f"{START}copy-{n}", html("Copy", ring[9], text="the same")) for n in (1, 2)]
    return MemoryWeb(*pages)


def made(name: str, folder: Path, seed: int = 0) -> Policy:
    """A policy whose preliminary crawl runs on the same web from the same seeds."""

    def preliminary_crawl(policy: Policy) -> Sequence[SettledFetch]:
        settled: list[SettledFetch] = []
        run_of(policy, folder / "rehearsal", settled)
        return settled

    scorer = Apprentice(WhaleClassifier()) if name.startswith(ABLATION_PREFIX) else WhaleScorer()
    return find_policy(name)(PolicyInputs(WhaleClassifier(), scorer, seed, preliminary_crawl))


def run_of(policy: Policy, folder: Path, settled: list[SettledFetch] | None = None) -> SimulatedRun:
    topic = load_topic(write_topic(folder, *SEEDS, politeness="concurrency = 3"))
    return simulate(
        topic,
        WhaleClassifier(),
        RecordedNetwork(web()),
        policy,
        latency=hashed_latency(0.2, seed=1),
        watch=None if settled is None else settled.append,
    )


@dataclass(frozen=True)
class Crawled:
    """One run of a policy, and what it settled."""

    policy: Policy
    run: SimulatedRun
    settled: list[SettledFetch]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Crawled]:
    """The crawl of a policy, which is made once."""

    @cache
    def crawled(name: str) -> Crawled:
        folder = tmp_path_factory.mktemp(name)
        settled: list[SettledFetch] = []
        policy = made(name, folder)
        return Crawled(policy, run_of(policy, folder, settled), settled)

    return crawled


def links(count: int) -> list[Link]:
    return [Link(f"http://h{n % 3}.test/{n}", anchor=f"whale {n}") for n in range(count)]


def visit(relevance: float = 0.9, url: str = START) -> PageContext:
    return PageContext(Page(url), Classification(relevance, relevance >= 0.5))


def check(answer: ScoredLinks, policy: Policy, count: int) -> None:
    assert answer.scores.shape == (count,)
    assert answer.features.shape == (count, len(policy.scorer.feature_names))
    assert np.isfinite(answer.features).all()
    assert ((answer.scores >= 0.0) & (answer.scores <= 1.0)).all()
    assert np.isfinite([policy.ordering(float(score), 7) for score in answer.scores]).all()


@each_policy
@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("relevance", [0.0, 0.4, 1.0])
def test_scores_are_probabilities_one_a_link(name, count, relevance, tmp_path):
    policy = made(name, tmp_path)
    check(policy.scorer.score(visit(relevance), links(count)), policy, count)


@each_policy
def test_each_policy_has_the_name_it_is_registered_by(name, tmp_path):
    assert made(name, tmp_path).name == name


@each_policy
def test_scoring_alone_changes_nothing(name, tmp_path):
    scorer = made(name, tmp_path).scorer
    first, second = (scorer.score(visit(), links(20)) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    assert np.array_equal(first.features, second.features)


# Depth-first takes its seeds last by design.
@pytest.mark.parametrize("name", sorted({*ordering_names()} - {"dfs"}))
def test_a_seed_comes_before_all_that_is_found(name, tmp_path):
    policy = made(name, tmp_path)
    scores = policy.scorer.score(visit(1.0), links(20)).scores
    found = max(policy.ordering(float(score), 3 + n) for n, score in enumerate(scores))
    assert policy.ordering(1.0, 0) >= found


@each_policy
def test_every_reachable_page_is_fetched_once(name, crawled):
    run = crawled(name).run
    assert run.end_reason == "frontier is empty"
    again = {url for url, count in Counter(run.asked).items() if count > 1}
    assert again <= {"http://d.test/busy", "http://gone.test/", "http://gone.test/outward"}
    fetched = set(run.pages.loc[run.pages["outcome"] == "fetched", "url"])
    breadth_first = crawled("bfs").run.pages
    assert fetched == set(breadth_first.loc[breadth_first["outcome"] == "fetched", "url"])
    assert len(fetched) > 190
    assert not any("/secret/" in url for url in run.asked)


@each_policy
def test_the_same_seed_gives_the_same_crawl_and_two_crawls_share_no_state(name, crawled, tmp_path):
    runs = [crawled(name).run, run_of(made(name, tmp_path), tmp_path)]
    assert runs[0].asked == runs[1].asked
    assert runs[0].pages.equals(runs[1].pages)


@each_policy
def test_scores_stay_probabilities_all_through_a_crawl(name, crawled):
    ours = crawled(name)
    found = [each for one in ours.settled for each in one.scored.values()]
    assert found
    assert all(0.0 <= each.score <= 1.0 for each in found)
    assert {len(each.features) for each in found} == {len(ours.policy.scorer.feature_names)}


def no_policy(inputs: PolicyInputs) -> int:
    return 42


def breaks(inputs: PolicyInputs) -> Policy:
    raise KeyError("nowhere")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("no_policy", "returns int, not focused.crawl.policy.Policy"),
        ("breaks", r"could not be created: KeyError: 'nowhere' \(.*test_every_policy.py, line"),
    ],
)
def test_a_custom_function_that_returns_no_policy_is_an_error(function, message):
    maker = find_policy(f"{__name__}.{function}")
    with pytest.raises(ConfigurationError, match=message):
        maker(PolicyInputs(WhaleClassifier(), WhaleScorer()))
