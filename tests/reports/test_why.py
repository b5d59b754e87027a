"""Why a page was fetched, or was not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from focused.errors import ConfigurationError, StateError
from focused.reports.why import (
    NOT_FETCHED,
    Explanation,
    PageAlias,
    ScoredInLink,
    explain_url,
    print_explanation,
)
from tests.support.crawl_folders import failed, good_page, page, write_crawl

SEED = "http://seed.example/"
HUB = "http://hub.example/list"
GOOD = "http://deep.example/sql/joins.html"
SCOPE = {"deny_hosts": ["denied.example"], "max_depth": 3, "content_types": ["text/html"]}

ROWS = [
    good_page(SEED, parent=None, depth=0, score=1.0, title="Seed", features={"seed": 1.0}),
    page(HUB, parent=SEED, depth=1, score=0.4, anchor="All\nof [it]", relevance=0.3),
    good_page(
        GOOD,
        parent=HUB,
        depth=2,
        score=0.83,
        anchor="Joins",
        title="Joining tables",
        relevance=0.95,
        features={"depth": -0.1, "anchor": 2.5, "parent": -0.7},
    ),
    failed("http://gone.example/", "http-4xx", parent=HUB, depth=2),
]


def link(target: str, source: str = HUB, score: float | None = None, **more: Any) -> dict[str, Any]:
    return {"source": source, "target": target, "score": score, **more}


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    waiting = "http://waiting.example/"
    links = [
        link(GOOD, score=0.83),
        link(waiting, SEED, 0.125, anchor="early"),
        link(waiting, HUB, 0.25, anchor="better"),
        link(waiting, HUB, None),
        link("http://denied.example/x"),
        link("http://unscored.example/"),
    ]
    return write_crawl(tmp_path, ROWS, links=links, settings={"topic": {"scope": SCOPE}})


def printed(explanation: Explanation) -> str:
    console = Console(width=60)
    with console.capture() as capture:
        print_explanation(explanation, console)
    return capture.get()


def test_the_path_leads_from_the_seed_to_the_page(crawl):
    explanation = explain_url(crawl, GOOD)
    assert explanation.outcome == "fetched"
    assert [step.url for step in explanation.steps] == [SEED, HUB, GOOD]
    assert explanation.path_problem == ""


def test_each_step_has_its_anchor_score_and_verdict(crawl):
    step = explain_url(crawl, GOOD).steps[-1]
    assert (step.anchor, step.score, step.relevance, step.on_topic) == ("Joins", 0.83, 0.95, True)


def test_the_weightiest_feature_comes_first(crawl):
    step = explain_url(crawl, GOOD).steps[-1]
    assert list(step.features) == ["anchor", "parent", "depth"]


def test_evidence_that_the_crawls_prior_gives_no_weight_comes_last(tmp_path):
    values = {"in_links": 8.0, "siblings": 1.5, "parents": -2.0}
    rows = [{**row, "features": values} if row["url"] == GOOD else row for row in ROWS]
    settings = {"topic": {"scope": SCOPE, "training": {"link_prior": "all-webs"}}}
    step = explain_url(write_crawl(tmp_path, rows, settings=settings), GOOD).steps[-1]
    assert list(step.features)[-1] == "in_links"
    gone = {"topic": {"scope": SCOPE, "training": {"link_prior": "no/such.json"}}}
    step = explain_url(write_crawl(tmp_path / "gone", rows, settings=gone), GOOD).steps[-1]
    assert next(iter(step.features)) == "in_links"


def test_a_seed_has_no_features(crawl):
    explanation = explain_url(crawl, SEED)
    assert [step.features for step in explanation.steps] == [{}]


@pytest.mark.parametrize(
    "typed",
    [
        " http://deep.example/sql/joins.html ",
        "HTTP://Deep.Example:80/sql/joins.html#inner",
        "deep.example/sql/joins.html",
    ],
)
def test_a_url_may_be_typed_as_people_do(crawl, typed):
    assert explain_url(crawl, typed).url == GOOD


def test_a_failure_is_explained_like_a_page(crawl):
    explanation = explain_url(crawl, "http://gone.example/")
    assert explanation.outcome == "failed"
    assert "failed: http-4xx" in printed(explanation)


def test_a_noindex_page_is_reported_as_dropped(tmp_path):
    asking = page(SEED, outcome="noindex", parent=None, relevance=0.9)
    explanation = explain_url(write_crawl(tmp_path, [asking]), SEED)
    assert explanation.outcome == "noindex"
    assert "relevance 0.90, dropped (noindex)" in printed(explanation)


def test_a_feed_is_a_step_like_any_other(tmp_path):
    feed = page(SEED, outcome="feed", parent=None, relevance=None)
    explanation = explain_url(write_crawl(tmp_path, [feed]), SEED)
    assert explanation.outcome == "feed"
    assert "a feed or sitemap" in printed(explanation)


def test_an_unfollowed_link_is_reported_with_its_best_score_and_sources(crawl):
    explanation = explain_url(crawl, "http://waiting.example/")
    assert explanation.outcome == NOT_FETCHED
    assert explanation.in_links == (
        ScoredInLink(HUB, "better", 0.25),
        ScoredInLink(SEED, "early", 0.125),
        ScoredInLink(HUB, "", None),
    )
    assert [step.url for step in explanation.steps] == [SEED, HUB]
    assert "its best score was 0.25;" in printed(explanation)


def test_a_link_out_of_scope_is_reported_with_the_reason(crawl):
    explanation = explain_url(crawl, "http://denied.example/x")
    assert explanation.out_of_scope == "host denied"
    assert "out of scope (host denied)" in printed(explanation)


def test_a_link_that_was_never_scored_is_reported_as_such(crawl):
    explanation = explain_url(crawl, "http://unscored.example/")
    assert explanation.out_of_scope == ""
    assert "no link to it was scored" in printed(explanation)


def test_a_link_from_a_page_without_a_row_is_reported_without_a_path(tmp_path):
    target = "http://x.example/"
    crawl = write_crawl(tmp_path, ROWS, links=[link(target, "http://lost.example/", 0.5)])
    explanation = explain_url(crawl, target)
    assert explanation.steps == ()
    assert explanation.path_problem == "http://lost.example/ has no row in pages.parquet"


def test_an_unknown_url_suggests_similar_ones(crawl):
    with pytest.raises(ConfigurationError, match="neither fetched it nor found") as caught:
        explain_url(crawl, "http://deep.example/sql/join.html")
    assert GOOD in str(caught.value)


def test_a_part_of_a_url_is_met_with_the_urls_that_hold_it(crawl):
    with pytest.raises(ConfigurationError, match=GOOD):
        explain_url(crawl, "SQL/joins")


def test_a_url_unlike_all_others_has_no_suggestions(crawl):
    with pytest.raises(ConfigurationError) as caught:
        explain_url(crawl, "0")
    assert "near to it" not in str(caught.value)


def test_a_crawl_without_links_still_explains_its_pages(crawl):
    (crawl / "links.parquet").unlink()
    assert explain_url(crawl, GOOD).outcome == "fetched"


def test_a_redirect_is_reported_with_its_target(tmp_path):
    old, older, new = (f"http://a.example/{name}" for name in ("old", "older", "new"))
    rows = [
        page(older, parent=None, outcome="redirected", points_to=old),
        page(old, parent=older, outcome="redirected", points_to=new),
        failed(new, "gone", parent=old),
    ]
    explanation = explain_url(write_crawl(tmp_path, rows), older)
    assert explanation.aliases == (
        PageAlias("Redirects to", old, "redirected"),
        PageAlias("Redirects to", new, "gone"),
    )
    assert "Redirects to http://a.example/new: gone" in printed(explanation)


def test_redirects_in_a_circle_end_where_it_closes(tmp_path):
    one, two = "http://a.example/1", "http://a.example/2"
    rows = [
        page(one, parent=None, outcome="redirected", points_to=two),
        page(two, parent=one, outcome="redirected", points_to=one),
    ]
    explanation = explain_url(write_crawl(tmp_path, rows), one)
    assert [alias.url for alias in explanation.aliases] == [two, one]


def test_an_unfetched_url_is_reported_with_the_page_that_names_it_canonical(tmp_path):
    node, name = "http://a.example/node/1", "http://a.example/whales"
    rows = [good_page(SEED, parent=None), good_page(node, parent=SEED, points_to=name)]
    explanation = explain_url(write_crawl(tmp_path, rows), name)
    assert (explanation.outcome, explanation.aliases) == (
        NOT_FETCHED,
        (PageAlias("Canonical URL of", node, "fetched"),),
    )
    assert [step.url for step in explanation.steps] == [SEED, node]
    assert "Canonical URL of http://a.example/node/1" in printed(explanation)
    assert explain_url(write_crawl(tmp_path, rows), node).aliases == (
        PageAlias("Canonical URL", name, "not fetched"),
    )


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(StateError, match="no such folder"):
        explain_url(tmp_path / "none", GOOD)


def test_a_parent_without_a_row_breaks_the_path_and_is_reported(tmp_path):
    crawl = write_crawl(tmp_path, [page(HUB, parent="http://lost.example/")])
    explanation = explain_url(crawl, HUB)
    assert [step.url for step in explanation.steps] == [HUB]
    assert "its parent http://lost.example/ has no row" in printed(explanation)


def test_parents_in_a_circle_end_where_it_closes(tmp_path):
    rows = [page(HUB, parent=GOOD), page(GOOD, parent=SEED), page(SEED, parent=GOOD)]
    explanation = explain_url(write_crawl(tmp_path, rows), HUB)
    assert [step.url for step in explanation.steps] == [SEED, GOOD, HUB]
    assert explanation.path_problem == f"the chain of parents has a cycle at {GOOD}"


def test_of_two_rows_of_one_url_the_later_holds(tmp_path):
    rows = [failed(SEED, "timeout", parent=None), good_page(SEED, parent=None)]
    assert explain_url(write_crawl(tmp_path, rows), SEED).outcome == "fetched"


@given(parents=st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=8))
def test_any_tangle_of_parents_is_explained(tmp_path_factory, parents):
    urls = [f"http://h.example/{i}" for i in range(10)]
    rows = [page(urls[i], parent=None if p is None else urls[p]) for i, p in enumerate(parents)]
    crawl = write_crawl(tmp_path_factory.getbasetemp() / "tangle", rows)
    explanation = explain_url(crawl, urls[0])
    assert explanation.steps[-1].url == urls[0]
    assert len(explanation.steps) <= len(rows)
    assert (explanation.steps[0].parent is None) == (explanation.path_problem == "")


def test_the_explanation_is_printed_step_by_step_from_the_seed(crawl):
    lines = [line.strip() for line in printed(explain_url(crawl, GOOD)).splitlines()]
    assert lines == [
        GOOD,
        "fetched, 2 steps from its seed:",
        f"seed {SEED}",
        '"Seed": relevance 0.90, on topic',
        f"-> {HUB}",
        'anchor "All of [it]", score 0.40',
        "of 1 page fetched with a score of 0.4 to 0.5, 0 were on topic: "
        "too few to tell what the score means",
        "relevance 0.30, off topic",
        f"-> {GOOD}",
        'anchor "Joins", score 0.83',
        "of 1 page fetched with a score of 0.8 to 0.9, 1 was on topic: "
        "too few to tell what the score means",
        "+2.500  anchor",
        "-0.700  parent",
        "-0.100  depth",
        '"Joining tables": relevance 0.95, on topic',
    ]


def many(score: float, good: int, bad: int) -> list[dict[str, Any]]:
    make = [good_page] * good + [page] * bad
    return [each(f"{HUB}/{score}/{n}", score=score, depth=2) for n, each in enumerate(make)]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (82, 17, "of 100 pages fetched with a score of 0.8 to 0.9, 83 were on topic: 83%"),
        (49, 50, "of 100 pages fetched with a score of 0.8 to 0.9, 50 were on topic: 50%"),
        (29, 0, "of 30 pages fetched with a score of 0.8 to 0.9, 30 were on topic: 100%"),
        (10, 8, "of 19 pages fetched with a score of 0.8 to 0.9, 11 were on topic: "
        "too few to tell what the score means"),
    ],
)  # fmt: skip
def test_a_score_is_explained_by_the_outcomes_of_similar_scores(tmp_path, good, bad, message):
    crawl = write_crawl(tmp_path, ROWS + many(0.85, good, bad))
    assert message in printed(explain_url(crawl, GOOD))


def test_of_a_link_not_followed_the_best_score_is_explained(tmp_path):
    waiting = "http://waiting.example/"
    links = [link(waiting, HUB, 0.25), link(waiting, SEED, 0.72)]
    crawl = write_crawl(tmp_path, ROWS + many(0.75, 15, 15), links=links)
    explanation = printed(explain_url(crawl, waiting))
    assert "its best score was 0.72;" in explanation
    assert "of 30 pages fetched with a score of 0.7 to 0.8, 15 were on topic" in explanation


def test_a_score_without_fetched_pages_has_an_unknown_meaning(tmp_path):
    waiting = "http://waiting.example/"
    crawl = write_crawl(tmp_path, ROWS, links=[link(waiting, HUB, 0.25)])
    explanation = printed(explain_url(crawl, waiting))
    assert "no page was fetched with a score of 0.2 to 0.3" in explanation


def test_a_score_that_only_orders_links_is_no_probability(tmp_path):
    crawl = write_crawl(tmp_path, ROWS, settings={"policy": "best-first"})
    explanation = printed(explain_url(crawl, GOOD))
    assert "score 0.83, a rank, not a probability" in explanation
    assert "with a score of" not in explanation
