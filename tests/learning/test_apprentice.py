"""The apprentice: evidence added up to a probability, and lessons that change what it is worth."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from string import ascii_lowercase
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from focused.frontier.queued import QueuedLink
from focused.learning import apprentice as module
from focused.learning.apprentice import Apprentice
from focused.learning.calibration import expit
from focused.learning.evidence import COLUMN, FEATURE_NAMES
from focused.learning.lesson import Lesson
from focused.learning.link_prior import DEFAULT_PRIOR, LinkPrior
from focused.learning.protocols import Visit
from focused.web.page import Judgement, Link, Page
from tests.support.queueing import queued

HOME = "https://home.example/page"
UNSURE = Judgement(0.5, on_topic=True)
PLAIN = Link("https://home.example/other")
WEIGHTS = {"since": -0.5, "navigation": -0.5, "out_degree": -0.1, "in_links": 0.0}
PRIOR = LinkPrior(
    "made up",
    ("nowhere",),
    bias=-1.0,
    weights=np.array([WEIGHTS.get(name, 0.4) for name in FEATURE_NAMES]),
    scales=np.ones(len(FEATURE_NAMES)),
)


class KeywordJudge:
    """Two nats for each ``good``, minus two for each ``bad``; remembers what it was asked."""

    threshold = 0.5

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, page: Page) -> Judgement:
        return UNSURE

    def verdicts(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([2.0 * (t.count("good") - t.count("bad")) for t in texts], dtype=float)


@pytest.fixture
def apprentice() -> Apprentice:
    return Apprentice(KeywordJudge(), PRIOR)


def seen(relevance: float = 0.5, url: str = HOME, links: int = 0, **fields) -> Visit:
    page = Page(url, links=tuple(Link(f"{url}/{n}") for n in range(links)))
    return Visit(page, Judgement(relevance, relevance > 0.5), **fields)


def told(features: Sequence[float]) -> dict[str, float]:
    """The evidence that says anything, by name."""
    named = zip(FEATURE_NAMES, np.array(features).tolist(), strict=True)
    return {name: value for name, value in named if value}


def evidence(link: Link, visit: Visit | None = None, *lessons: Lesson) -> dict[str, float]:
    pupil = Apprentice(KeywordJudge(), PRIOR)
    for lesson in lessons:
        pupil.learn(lesson)
    return told(pupil.score(visit or seen(), [link]).features[0])


def lesson(
    relevance: float,
    *,
    anchor: str = "",
    url: str = "https://far.example/x",
    words: Sequence[str] = (),
    parent: str = "https://far.example/",
    trail: int = 0,
    features: Mapping[str, float] = MappingProxyType({}),
) -> Lesson:
    row = tuple(features.get(name, 0.0) for name in FEATURE_NAMES)
    return Lesson(url, anchor, parent, trail, row, tuple(words), relevance)


def a_crawls_lessons(count: int, seed: int = 1) -> list[Lesson]:
    """Links on odd pages were good, in places and words that tell it now and then."""
    rng = random.Random(seed)
    lessons = []
    for n in range(count):
        good = rng.random() < 0.4
        kind = "whale" if good else "trade"
        row = {name: rng.gauss(1.0 if good else 0.0, 1.0) for name in FEATURE_NAMES}
        lessons.append(
            lesson(
                0.9 if good else 0.1,
                anchor=f"{kind} {rng.choice('abcdef') * 3}",
                url=f"https://{kind}.example/{n}",
                words=rng.sample(["sea", "ship", kind, "harbour", "bank"], 3),
                parent=f"https://home.example/{rng.randrange(5)}",
                trail=rng.randrange(5),
                features=row,
            )
        )
    return lessons


LINKS = [
    Link(f"https://{kind}.example/{n}", f"{kind} {n}", f"a {kind} in the sea", tag_path=f"ul/{n}")
    for kind in ("whale", "trade", "good")
    for n in range(5)
]


# What is told of a link


def test_of_a_bare_link_on_a_page_that_says_nothing_only_itself_is_told():
    assert evidence(PLAIN) == {"in_links": 1.0}


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"anchor": "good"}, "anchor", 2.0),
        ({"context": "bad"}, "context", -2.0),
        ({"url": "https://home.example/some-good-page"}, "url", 2.0),
        ({"url": "https://home.example/SomePage.goodThing"}, "url", 2.0),
        ({"navigation": True}, "navigation", 1.0),
    ],
)
def test_each_part_of_a_link_tells_its_own_thing(change, name, value):
    assert evidence(replace(PLAIN, **change)) == {"in_links": 1.0, name: value}


@pytest.mark.parametrize(("relevance", "nats"), [(0.0, -4.0), (1.0, 4.0)])
def test_its_page_tells_how_relevant_it_is_and_how_many_links_it_has(relevance, nats):
    found = evidence(PLAIN, seen(relevance, links=7))
    assert found["parent"] == found["parents"] == pytest.approx(nats)
    assert found["out_degree"] == pytest.approx(np.log(8))


def test_links_since_the_last_page_on_topic_are_counted_along_the_way():
    off_topic = [seen(0.1), seen(0.1), seen(0.1)]
    found = evidence(PLAIN, seen(0.9))
    told_since = [found.get("since", 0.0)]
    for visit in off_topic:
        row = tuple(found.get(name, 0.0) for name in FEATURE_NAMES)
        found = evidence(PLAIN, Visit(visit.page, visit.judgement, evidence=row))
        told_since.append(found["since"])
    assert told_since == [0.0, 1.0, 2.0, 3.0]


# What makes the score


def test_before_any_lesson_the_score_is_what_the_prior_makes_of_the_evidence(apprentice):
    scored = apprentice.score(seen(0.8, links=3), LINKS)
    assert scored.scores == pytest.approx(expit(PRIOR.bias + scored.features @ PRIOR.weights))


def test_the_worth_of_links_of_one_folder_orders_as_their_scores_do(apprentice):
    same_folder = [link for link in LINKS if "whale" in link.url]
    same_folder = [replace(link, anchor="good " * n) for n, link in enumerate(same_folder)]
    found = apprentice.score_joined(seen(), same_folder, [None] * 5)
    assert np.argsort(found.worth).tolist() == np.argsort(found.scores).tolist() == [*range(5)]


def test_without_a_prior_of_ones_own_the_shipped_one_is_taken():
    assert Apprentice(KeywordJudge()).prior.name == DEFAULT_PRIOR


@pytest.mark.parametrize("part", ["anchor", "context", "url"])
def test_words_of_the_topic_raise_the_score(apprentice, part):
    good, bad = (replace(PLAIN, **{part: f"https://home.example/{w}"}) for w in ("good", "bad"))
    scores = apprentice.score(seen(), [good, PLAIN, bad]).scores
    assert scores[0] > scores[1] > scores[2]


def test_links_of_a_relevant_page_score_higher(apprentice):
    low, high = (apprentice.score(seen(relevance), [PLAIN]).scores[0] for relevance in (0.1, 0.9))
    assert high > low


@pytest.mark.parametrize("name", ["anchor", "parent"])
def test_evidence_left_out_is_told_and_counts_for_nothing(name):
    blind = Apprentice(KeywordJudge(), PRIOR, without=[name])
    loud = replace(PLAIN, anchor="good good")
    found = blind.score(seen(0.9), [loud])
    assert found.features[0, COLUMN[name]] > 1.0
    found.features[0, COLUMN[name]] = 0.0
    assert found.scores == pytest.approx(expit(PRIOR.bias + found.features @ PRIOR.weights))


def test_a_page_without_links_has_no_scores(apprentice):
    scored = apprentice.score(seen(), [])
    assert scored.scores.shape == (0,)
    assert scored.features.shape == (0, len(apprentice.feature_names))


@settings(deadline=None)
@given(
    relevance=st.floats(0, 1),
    links=st.lists(
        st.builds(
            Link,
            url=st.sampled_from(["https://home.example/a", "http://b.example/%ZZ%ff?x=Å"]),
            anchor=st.text(),
            context=st.sampled_from(["", "good " * 50, "bad " * 50]),
            tag_path=st.text(),
            navigation=st.booleans(),
        )
    ),
)
def test_scores_are_probabilities_and_do_not_depend_on_neighbours(relevance, links):
    pupil = Apprentice(KeywordJudge(), PRIOR)
    for each in a_crawls_lessons(30):
        pupil.learn(each)
    scored = pupil.score(seen(relevance), links)
    assert np.all((scored.scores > 0) & (scored.scores < 1))
    alone = [pupil.score(seen(relevance), [link]).scores[0] for link in links]
    assert scored.scores == pytest.approx(alone)


# What several pages tell of one target


def test_a_second_page_that_links_is_joined_with_the_first(apprentice):
    (one,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="good")])
    (both,) = queued(apprentice, seen(0.1, "https://b.example/"), [PLAIN], [one])
    found = told(both.evidence)
    assert found["in_links"] == 2.0
    assert found["parents"] < found["parent"]
    assert found["anchor"] == 2.0


def test_a_poorer_page_lowers_the_target_and_leaves_its_anchor_and_place_to_the_better(apprentice):
    (one,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="good", tag_path="p/a")])
    poor = replace(PLAIN, anchor="else", tag_path="ul/a")
    (both,) = queued(apprentice, seen(0.1, "https://b.example/"), [poor], [one])
    assert (both.anchor, both.parent, both.trail) == (one.anchor, one.parent, one.trail)
    assert both.score < one.score


def test_a_better_page_raises_the_target_and_stands_for_it(apprentice):
    (one,) = queued(apprentice, seen(0.1), [replace(PLAIN, anchor="else", tag_path="ul/a")])
    better = replace(PLAIN, anchor="more", tag_path="p/a")
    (both,) = queued(apprentice, seen(0.9, "https://b.example/"), [better], [one])
    assert (both.anchor, both.parent) == ("more", "https://b.example/")
    assert both.trail != one.trail
    assert both.score > one.score


def test_what_the_crawl_tells_of_a_target_is_that_of_the_anchor_that_stands_for_it(apprentice):
    for _ in range(9):
        apprentice.learn(lesson(0.9, anchor="harpoon"))
        apprentice.learn(lesson(0.1, anchor="ledger"))
    (one,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="harpoon")])
    poor = seen(0.1, "https://b.example/")
    (both,) = queued(apprentice, poor, [replace(PLAIN, anchor="ledger")], [one])
    assert told(both.evidence)["anchor_words"] == told(one.evidence)["anchor_words"] > 0.0


def test_scoring_alone_is_scoring_with_nothing_that_waits(apprentice):
    apprentice.learn(lesson(0.9, anchor="whale"))
    alone, joined = apprentice.score(seen(), LINKS), queued(apprentice, seen(), LINKS)
    assert alone.scores.tolist() == [each.score for each in joined]


# What it learns


def asked(pupil: Apprentice, link: Link, visit: Visit | None = None) -> dict[str, float]:
    return told(pupil.score(visit or seen(), [link]).features[0])


@pytest.mark.parametrize(
    ("name", "of_good", "of_bad"),
    [
        ("anchor_words", {"anchor": "harpoon"}, {"anchor": "ledger"}),
        ("url_words", {"url": "https://a.example/harpoon"}, {"url": "https://a.example/ledger"}),
    ],
)
def test_words_of_links_are_worth_what_they_led_to(apprentice, name, of_good, of_bad):
    for _ in range(5):
        apprentice.learn(lesson(0.9, **of_good))
        apprentice.learn(lesson(0.1, **of_bad))
    good, bad = (asked(apprentice, replace(PLAIN, **each))[name] for each in (of_good, of_bad))
    assert good > 0.1
    assert bad < -0.1


def test_words_of_pages_are_worth_what_the_pages_were(apprentice):
    for _ in range(5):
        apprentice.learn(lesson(0.9, words=["harpoon"]))
        apprentice.learn(lesson(0.1, words=["ledger"]))
    link = replace(PLAIN, anchor="harpoon", context="among a ledger")
    found = asked(apprentice, link)
    assert found["page_words"] > 0.1
    assert found["context_words"] < -0.1


def test_links_of_a_page_that_paid_are_worth_more_and_only_they(apprentice):
    for _ in range(5):
        apprentice.learn(lesson(0.9, parent=HOME))
        apprentice.learn(lesson(0.1, parent="https://far.example/"))
    assert asked(apprentice, PLAIN)["siblings"] > 0.1
    assert asked(apprentice, PLAIN, seen(url="https://far.example/"))["siblings"] < -0.1
    assert "siblings" not in asked(apprentice, PLAIN, seen(url="https://new.example/"))


def test_links_in_a_place_that_paid_are_worth_more_on_other_pages_of_the_site(apprentice):
    listed, elsewhere = replace(PLAIN, tag_path="ul/li/a"), replace(PLAIN, tag_path="p/a")
    (found,) = queued(apprentice, seen(), [listed])
    for _ in range(5):
        apprentice.learn(apprentice.lesson(found, Page(found.url), 0.9))
        apprentice.learn(lesson(0.1))
    other_page = seen(url="https://home.example/second")
    assert asked(apprentice, listed, other_page)["tag_path"] > 0.1
    assert "tag_path" not in asked(apprentice, elsewhere, other_page)
    other_site = replace(listed, url="https://new.example/")
    assert "tag_path" not in asked(apprentice, other_site, other_page)


def test_a_lesson_holds_the_link_as_it_was_fetched_and_the_pages_words_once(apprentice):
    (link,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="go", tag_path="p/a")])
    page = Page(link.url, title="Whale", headings=("Sea",), text="the whale in the sea")
    found = apprentice.lesson(link, page, 0.7)
    assert (found.url, found.anchor, found.parent) == (link.url, "go", HOME)
    assert (found.trail, found.evidence, found.relevance) == (link.trail, link.evidence, 0.7)
    assert found.words == ("whale", "sea", "the", "in")


def test_a_lesson_of_an_endless_page_is_short(apprentice):
    (link,) = queued(apprentice, seen(), [PLAIN])
    endless = Page(link.url, text=" ".join(map("".join, product(ascii_lowercase, repeat=3))))
    assert len(apprentice.lesson(link, endless, 0.7).words) == 400


def test_a_seed_teaches_the_words_of_its_page_and_nothing_of_links(apprentice):
    seed = QueuedLink(b"k", "https://home.example/harpoon", "home.example", 4.0, 1.0)
    found = apprentice.lesson(seed, Page(seed.url, text="a whale"), 0.9)
    assert found.evidence == ()
    for _ in range(30):
        apprentice.learn(found)
        apprentice.learn(lesson(0.1, words=["bank"]))
    link = Link("https://a.example/harpoon", context="whale")
    assert asked(apprentice, link)["context_words"] > 0.1
    assert "siblings" not in asked(apprentice, link)
    assert asked(apprentice, link).get("url_words", 0.0) <= 0.0


def after_links_that_kept_their_promise(**options) -> Apprentice:
    """Links with a verdict on their context paid, the others did not."""
    pupil = Apprentice(KeywordJudge(), PRIOR, **options)
    for n in range(500):
        loud = n % 2 == 0
        row = {"context": 2.0 if loud else 0.0}
        pupil.learn(lesson(0.95 if loud else 0.05, features=row))
    return pupil


def by_context(pupil: Apprentice) -> float:
    """By how many nats a good context raises a score."""
    links = [replace(PLAIN, context="good"), PLAIN]
    scores = pupil.score(seen(), links).scores
    return float(np.diff(np.log(scores / (1 - scores)))[0]) * -1.0


def test_evidence_that_kept_its_promise_weighs_more_from_then_on():
    untaught = Apprentice(KeywordJudge(), PRIOR)
    assert by_context(after_links_that_kept_their_promise()) > by_context(untaught) + 0.5


def test_one_that_does_not_learn_keeps_the_priors_weights_and_still_learns_words():
    frozen = after_links_that_kept_their_promise(learns=False)
    assert by_context(frozen) == pytest.approx(by_context(Apprentice(KeywordJudge(), PRIOR)))
    frozen.learn(lesson(0.0, anchor="harpoon"))
    links = [*LINKS, replace(PLAIN, anchor="harpoon")]
    scored = frozen.score(seen(0.8), links)
    assert scored.scores == pytest.approx(expit(PRIOR.bias + scored.features @ PRIOR.weights))
    assert told(scored.features[-1])["anchor_words"] < 0.0


def test_links_that_pay_as_their_scores_say_leave_the_scores_alone():
    """Calibrated from the start, calibrated to the end."""
    pupil = Apprentice(KeywordJudge(), PRIOR)
    rng = np.random.default_rng(3)
    for row in rng.normal(size=(1_000, len(FEATURE_NAMES))):
        share = float(expit(PRIOR.bias + row @ PRIOR.weights))
        pupil.learn(lesson(share, features=dict(zip(FEATURE_NAMES, row.tolist(), strict=True))))
    assert by_context(pupil) == pytest.approx(
        by_context(Apprentice(KeywordJudge(), PRIOR)), abs=0.1
    )


def test_a_link_scored_again_is_scored_as_if_it_had_just_been_found(apprentice):
    link = replace(PLAIN, anchor="good harpoon", tag_path="p/a")
    (old,) = queued(apprentice, seen(0.8), [link])
    unchanged = apprentice.rescore(old)
    assert (unchanged.score, unchanged.evidence) == (pytest.approx(old.score), old.evidence)
    assert unchanged.worth == pytest.approx(old.priority)
    for _ in range(30):
        apprentice.learn(lesson(0.0, anchor="harpoon"))
        apprentice.learn(lesson(0.9, anchor="else"))
    (new,) = queued(apprentice, seen(0.8), [link])
    again = apprentice.rescore(old)
    assert again.score == pytest.approx(new.score)
    assert again.worth == pytest.approx(new.priority)
    assert again.evidence == pytest.approx(new.evidence)
    assert again.score < old.score


# What it keeps


def answers(pupil: Apprentice) -> tuple:
    (one,) = queued(pupil, seen(0.3), [LINKS[0]])
    joined = pupil.score_joined(seen(0.8), LINKS, [one, *[None] * (len(LINKS) - 1)])
    again = pupil.rescore(one)
    return joined.scores.tolist(), joined.features.tolist(), joined.worth.tolist(), again


@pytest.mark.parametrize("cut", [0, 1, 24, 25, 60, 100])
def test_restored_it_scores_and_goes_on_as_if_nothing_had_been(cut):
    lessons = a_crawls_lessons(100)
    whole, before, after = (Apprentice(KeywordJudge(), PRIOR) for _ in range(3))
    for each in lessons[:cut]:
        before.learn(each)
    after.restore(before.state())
    assert answers(after) == answers(before)
    for each in lessons[cut:]:
        after.learn(each)
    for each in lessons:
        whole.learn(each)
    assert answers(after) == answers(whole)
    assert after.state() == whole.state()


def test_what_was_scored_in_between_does_not_matter_to_what_is_learned():
    curious, busy = Apprentice(KeywordJudge(), PRIOR), Apprentice(KeywordJudge(), PRIOR)
    for each in a_crawls_lessons(60):
        answers(curious)
        curious.learn(each)
        busy.learn(each)
    assert curious.state() == busy.state()


def test_a_state_is_plain_data():
    pupil = Apprentice(KeywordJudge(), PRIOR)
    for each in a_crawls_lessons(60):
        pupil.learn(each)
    kept = msgspec.msgpack.decode(pupil.state())
    assert kept["relevance_found"] == pytest.approx(
        sum(each.relevance for each in a_crawls_lessons(60))
    )


def test_a_variant_has_learned_nothing_yet_and_shares_nothing():
    pupil = Apprentice(KeywordJudge(), PRIOR)
    for each in a_crawls_lessons(60):
        pupil.learn(each)
    variant = pupil.variant()
    assert answers(variant) == answers(Apprentice(KeywordJudge(), PRIOR))
    before = answers(pupil)
    variant.learn(lesson(0.9, anchor="whale"))
    assert answers(pupil) == before


def test_what_many_pages_link_to_is_asked_of_the_topic_model_once():
    judge = KeywordJudge()
    pupil = Apprentice(judge, PRIOR)
    menu = [Link(f"https://home.example/menu{n}", f"menu {n}") for n in range(5)]
    pupil.score(seen(), menu)
    first = len(judge.asked)
    pupil.score(seen(url="https://home.example/second"), menu)
    assert [text for text in judge.asked[first:] if text] == []


def test_memory_of_addresses_is_bounded_and_what_is_forgotten_is_asked_again(monkeypatch):
    monkeypatch.setattr(module, "_MAX_REMEMBERED", 100)
    judge = KeywordJudge()
    pupil = Apprentice(judge, PRIOR)
    pages = [[Link(f"https://home.example/{p}-{n}") for n in range(50)] for p in range(10)]
    scores = [pupil.score(seen(), links).scores.tolist() for links in pages]
    judge.asked.clear()
    assert pupil.score(seen(), pages[0]).scores.tolist() == scores[0]
    assert len([text for text in judge.asked if text]) == 50


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Lesson,
            url=st.sampled_from(["https://home.example/a", "http://b.example/%ZZ%ff?x=Å"]),
            anchor=st.text(),
            parent=st.text(),
            trail=st.integers(0, 2**64 - 1),
            evidence=st.just((0.0,) * len(FEATURE_NAMES)) | st.just(()),
            words=st.lists(st.text(), max_size=3).map(tuple),
            relevance=st.floats(0, 1),
        )
    ).map(lambda some: some * 9)
)
def test_any_lessons_leave_scores_that_are_probabilities_and_a_state_to_go_on_from(lessons):
    pupil, again = Apprentice(KeywordJudge(), PRIOR), Apprentice(KeywordJudge(), PRIOR)
    for each in lessons:
        pupil.learn(each)
    scores = pupil.score(seen(), LINKS).scores
    assert np.all((scores > 0) & (scores < 1))
    again.restore(pupil.state())
    assert again.score(seen(), LINKS).scores.tolist() == scores.tolist()
