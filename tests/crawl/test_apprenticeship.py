"""A learner is taught each judged page once, and asked again when a link's turn comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focused.web.page import Failed, FailureKind
from tests.support.keyword_guide import WhaleScorer
from tests.support.simulated import moved, page, site, topic

A = "http://a.test/"


class Pupil(WhaleScorer):
    """Scores as the whale scorer; afterwards as ``second_thoughts`` says, by URL."""

    def __init__(self, second_thoughts: Mapping[str, float] | None = None) -> None:
        self.lessons: list[tuple[str, str, float]] = []
        self.second_thoughts = dict(second_thoughts or {})

    def learn(self, url: str, anchor: str, relevance: float) -> None:
        self.lessons.append((url, anchor, relevance))

    def rescore(
        self, url: str, anchor: str, evidence: Sequence[float]
    ) -> tuple[float, Sequence[float]]:
        before = 0.6 * evidence[0] + 0.3 * evidence[1]
        return self.second_thoughts.get(url, before), evidence


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


def test_each_judged_page_is_taught_once_and_copies_are_not(simulate, tmp_path):
    pupil = Pupil()
    simulate(topic(tmp_path, A), web(), scorer=pupil).run()
    taught = [url for url, _, _ in pupil.lessons]
    assert sorted(taught) == [A, A + "end", A + "trade", A + "whale"]
    assert {url: relevance for url, _, relevance in pupil.lessons}[A + "whale"] == 0.9


def test_a_link_that_is_worth_less_by_now_gives_way(simulate, tmp_path):
    pupil = Pupil({A + "whale": 0.01})
    done = simulate(topic(tmp_path, A), web(), scorer=pupil).run()
    assert done.urls[-1] == A + "whale"


def test_the_score_on_record_is_the_one_that_it_was_fetched_with(simulate, tmp_path):
    pupil = Pupil({A + "whale": 0.01})
    done = simulate(topic(tmp_path, A), web(), scorer=pupil).run()
    assert done.rows[A + "whale"]["score"] == 0.01


def test_scores_that_fall_again_and_again_do_not_stop_a_crawl(simulate, tmp_path):
    class Melancholic(Pupil):
        asked = 0

        def rescore(self, url, anchor, evidence):
            self.asked += 1
            return 0.5 - 0.02 * self.asked, evidence

    done = simulate(topic(tmp_path, A), web(), scorer=Melancholic()).run()
    assert len(set(done.urls)) == 7


def test_after_a_restart_it_is_taught_again_what_it_knew(simulate, tmp_path):
    pupil = Pupil()
    begun = simulate(topic(tmp_path, A), web(), scorer=pupil).run(pages=3)
    before = list(pupil.lessons)
    assert len(before) >= 2
    begun.scorer = pupil = Pupil()
    begun.restart()
    assert pupil.lessons == before
    begun.run()
    assert [url for url, _, _ in pupil.lessons].count(A + "whale") == 1


def test_a_link_found_under_another_scorer_keeps_its_score(simulate, tmp_path):
    class OtherFeatures(Pupil):
        feature_names = ("anchor", "parent", "depth")

    begun = simulate(topic(tmp_path, A), web(), scorer=Pupil()).run(pages=1)
    begun.scorer = OtherFeatures({A + "whale": 0.01})
    done = begun.restart().run()
    assert done.rows[A + "whale"]["score"] > 0.5
