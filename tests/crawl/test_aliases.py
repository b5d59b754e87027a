"""Pages under many URLs: the cost, and that no page is lost to wrong canonical links."""

import random
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlsplit

import pytest

from focused.crawl.dedup.url_aliases import (
    CANONICAL,
    IGNORABLE_PARAMETER,
    MIN_DISTINCT_TEXTS,
    RECHECK_ONE_IN,
    SPELLING_VARIANT,
)
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.link_features import parent_log_odds
from focused.topic import Scope
from focused.web.page import FailureKind, Fetched, Outcome, Page, Redirected
from tests.support.recorded_web import html
from tests.support.simple_learner import SimpleLearner
from tests.support.simulated import Simulation, moved, page, raw, site, topic
from tests.support.whale_models import WhaleClassifier

PAGES = 40
SEED = "http://start.test/"
HONEST = 6
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "su", "te")


class AliasWeb:
    """The seed's host and those of some kinds, each named for what it does.

    Each host has :data:`PAGES` pages that differ, on topic all of them, under many URLs.
    """

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def get(self, url: str, default: Outcome) -> Outcome:
        """What is answered."""
        if url == SEED:
            return alias_page(url, "start", [f"http://{kind}.test/" for kind in self.kinds])
        parts = urlsplit(url)
        kind = parts.netloc.removesuffix(".test")
        if kind not in self.kinds or parts.path == "/robots.txt":
            return default
        return _MAKERS[kind](url, parts.path, dict(parse_qsl(parts.query))) or default


def _words(name: str, count: int = 40) -> list[str]:
    rng = random.Random(name)
    return ["".join(rng.choice(_SYLLABLES) for _ in range(4)) for _ in range(count)]


def alias_page(
    url: str, name: str, links: Sequence[str], canonical: str = "", words: Sequence[str] = ()
) -> Fetched:
    all_words = " ".join(["whale", *(words or _words(name))])
    headers = {"content-type": "text/html"}
    if canonical:
        headers["link"] = f'</style.css>; rel=preload, <{canonical}>; rel="canonical"'
    return Fetched(url, 200, headers, html(name, *links, text=all_words))


def _sorts(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Lists of one page each, in any order that is asked for."""
    number = path.removeprefix("/list/")
    if path == "/":
        return alias_page(url, "sorts", [f"/list/{n}" for n in range(PAGES)])
    words = sorted(_words(url.partition("?")[0]))
    random.Random(asked.get("sort", "name")).shuffle(words)
    links = [f"/list/{number}?sort={way}" for way in ("name", "price", "date", "rating")]
    return alias_page(url, f"list {number}", links, words=words)


def _pages_of_lists(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Lists of four pages; the first stands under its number, too, and all name it as canonical."""
    if path == "/":
        return alias_page(url, "lists", [f"/list/{n}" for n in range(PAGES // 4)])
    page = asked.get("page", "1")
    links = [f"{path}?page={n}" for n in range(1, 5)]
    return alias_page(url, f"{path} {page}", links, canonical=path, words=_words(f"{path} {page}"))


def _spelled(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Case does not count, and a folder's page has a name, too; links are written in all ways."""
    plain = path.lower().removesuffix("default.aspx")
    names = [f"/guide/part{chr(97 + n // 26)}{chr(97 + n % 26)}/" for n in range(PAGES)]
    if plain != "/" and plain not in names:
        return None
    rng = random.Random(plain)
    links = []
    for name in names:
        spelled = "/Guide/" + name[7:].capitalize() if rng.random() < 0.4 else name
        links.append(spelled + ("Default.aspx" if rng.random() < 0.4 else ""))
    return alias_page(url, plain, links)


def _redirecting(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Capitals are redirected; pages write links with them, the list of all without."""
    if path == "/":
        return alias_page(url, "moved", [f"/item/{n}" for n in range(PAGES)])
    if path != path.lower():
        return Redirected(url, 301, url.lower())
    number = int(path.rpartition("/")[2])
    return alias_page(url, path, [f"/Item/{(number + n) % PAGES}" for n in range(1, 4)])


def _canonical(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Each page has a number and a name, links to both, and says that the name is its URL."""
    names = ["-".join(_words(f"title {n}", 2)) for n in range(PAGES)]
    if path == "/":
        return alias_page(url, "canonical", [f"/node/{n}" for n in range(PAGES)])
    number = int(path.removeprefix("/node/")) if "/node/" in path else names.index(path[1:])
    links = [f"/{names[number]}", f"/{names[(number + 1) % PAGES]}"]
    return alias_page(url, f"title {number}", links, canonical=f"/{names[number]}")


def _front_liar(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """All pages say that they are the front page."""
    links = [f"/page/{n}" for n in range(PAGES)] if path == "/" else ["/"]
    return alias_page(url, path, links, canonical="/")


def _late_liar(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """The first pages have a copy each that they name; all others name the page after them."""
    if path == "/":
        first = [f"/page/{n}" for n in range(HONEST)]
        return alias_page(url, path, [*first, *(f"/copy{each}" for each in first)])
    name = path.removeprefix("/copy")
    number = int(name.rpartition("/")[2])
    canonical = f"/copy{name}" if number < HONEST else f"/page/{(number + 1) % PAGES}"
    return alias_page(url, name, [f"/page/{n}" for n in range(HONEST, PAGES)], canonical=canonical)


def _gone(url: str, path: str, asked: dict[str, str]) -> Outcome | None:
    """Half of the items are gone: one text answers for them, or they lead to their list."""
    if path == "/":
        links = [f"/item?id={n}" for n in range(2 * PAGES)]
        return alias_page(url, path, [*links, *(f"/old?id={n}" for n in range(2 * PAGES)), "/old"])
    number = asked.get("id", "")
    if path == "/old" and number and int(number) % 2:
        return Redirected(url, 302, "http://gone.test/old")
    if number and int(number) % 2:
        return alias_page(url, "No such item", [], words=_words("no such item"))
    return alias_page(url, f"{path} {number}", [])


_MAKERS: dict[str, Callable[[str, str, dict[str, str]], Outcome | None]] = {
    "sorts": _sorts,
    "lists": _pages_of_lists,
    "spelled": _spelled,
    "moved": _redirecting,
    "canonical": _canonical,
    "front-liar": _front_liar,
    "late-liar": _late_liar,
    "gone": _gone,
}

WITH_FRONTS = PAGES + 2
"""The pages of a host, its front page, and the seed."""


def crawled(simulate, tmp_path, kind: str, **sections) -> Simulation:
    mine = topic(tmp_path, SEED, delay_s=0.0, **sections)
    crawl = simulate(mine, AliasWeb(kind)).run(most_steps=4_000)
    assert crawl.ended.startswith("frontier is empty")
    return crawl


def titles(crawl: Simulation) -> set[str]:
    """Each page of an :class:`AliasWeb` has a title of its own, whatever its URL."""
    return {row["title"] for row in crawl.rows.values() if row["outcome"] == "fetched"}


def refused(crawl: Simulation) -> dict[str, int]:
    """Links refused at the door, by reason, and dropped at their turn, by kind."""
    counters = crawl.crawl.counters
    return {**counters.out_of_scope, **counters.failures}


@pytest.mark.parametrize(
    ("kind", "at_most"),
    [
        ("sorts", 2 * MIN_DISTINCT_TEXTS),
        ("lists", MIN_DISTINCT_TEXTS),
        ("spelled", 4 * MIN_DISTINCT_TEXTS),
        ("moved", MIN_DISTINCT_TEXTS),
        ("canonical", 2 * MIN_DISTINCT_TEXTS),
        ("front-liar", 0),
    ],
)
def test_every_page_comes_and_few_come_twice(simulate, tmp_path, kind, at_most):
    crawl = crawled(simulate, tmp_path, kind)
    assert len(titles(crawl)) == WITH_FRONTS
    assert len(crawl.urls) <= WITH_FRONTS + at_most


@pytest.mark.parametrize("kind", ["sorts", "spelled", "moved", "canonical"])
def test_without_what_is_learned_they_are_fetched_again_and_again(simulate, tmp_path, kind):
    crawl = crawled(simulate, tmp_path, kind, scope=Scope(traps=False))
    assert len(titles(crawl)) == WITH_FRONTS
    assert len(crawl.urls) > WITH_FRONTS + 0.8 * PAGES


def test_a_host_whose_items_are_gone_keeps_those_that_are_there(simulate, tmp_path):
    """They are answered by one text, or led to their list: neither makes the number idle."""
    crawl = crawled(simulate, tmp_path, "gone")
    there = {f"{name} {n}" for name in ("/item", "/old") for n in range(0, 2 * PAGES, 2)}
    assert there <= titles(crawl)


def test_a_host_that_goes_wrong_is_noticed(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "late-liar")
    assert len(titles(crawl)) >= WITH_FRONTS - RECHECK_ONE_IN
    assert not crawl.crawl.traps.refusal_reason("http://late-liar.test/page/20")


def test_what_is_refused_is_called_by_its_name_and_no_trap(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "spelled")
    assert crawl.crawl.traps.refusal_reason("http://spelled.test/GUIDE/partaa/") == SPELLING_VARIANT
    assert (
        refused(crawl).get(FailureKind.ALIAS, 0) + refused(crawl).get(SPELLING_VARIANT, 0) > PAGES
    )
    assert crawl.crawl.traps.stats.lines() == []


def test_a_sort_order_is_an_ignorable_parameter_with_a_line_in_the_report(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "sorts")
    (line,) = crawl.crawl.traps.stats.lines()
    assert (line.site, line.kind) == ("sorts.test", IGNORABLE_PARAMETER)
    assert line.links > PAGES


def test_the_first_page_of_a_list_is_the_list_and_its_second_is_not(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "lists")
    late = "http://lists.test/list/0?page={}"
    assert crawl.crawl.traps.refusal_reason(late.format(1)) == IGNORABLE_PARAMETER
    assert crawl.crawl.traps.refusal_reason(late.format(7)) is None


def test_a_parameter_that_is_kept_is_never_ignorable(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "sorts", scope=Scope(keep_parameters=("so*",)))
    assert len(crawl.urls) > 4 * PAGES


def test_what_was_learned_survives_a_restart(simulate, tmp_path):
    crawl = crawled(simulate, tmp_path, "canonical").restart()
    known = [url for url in crawl.urls if "/node/" in url]
    named = [crawl.rows[url]["points_to"] for url in known]
    reasons = [crawl.crawl.traps.refusal_reason(url) for url in named]
    assert reasons.count(CANONICAL) > PAGES / 2
    assert not any(crawl.crawl.traps.refusal_reason(url) for url in known)


A, B = "http://a.test/", "http://b.test/"
ITEMS = [f"amber beacon cedar dune ember fjord grove harbor {word} whale" for word in "xyzuvw"]


def named(url: str, canonical: str, text: str, *links: str):
    return page(url, *links, text=text, link=f'<{canonical}>; rel="canonical"')


def test_a_list_in_another_order_that_names_a_fetched_one_is_its_duplicate(simulate, tmp_path):
    text = " ".join(ITEMS)
    web = site(
        page(A, f"{A}list"),
        page(f"{A}list", f"{A}list?by=size", text=text, title="t"),
        page(
            f"{A}list?by=size",
            f"{A}list?by=size",
            text=" ".join(reversed(text.split())),
            title="t",
            link=f"<{A}list>; rel=canonical",
        ),
    )
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web, policy="bfs").run()
    row = crawl.rows[f"{A}list?by=size"]
    assert (row["duplicate_of"], row["duplicate_kind"]) == (f"{A}list", "canonical")
    assert (row["on_topic"], row["points_to"]) == (False, f"{A}list")


def test_another_hosts_page_is_never_refused_for_what_a_host_says(simulate, tmp_path):
    """A host that copies pages, and then names others that it has nothing of."""
    true, lies = range(6), range(6, 12)
    texts = {n: f"whale {chr(97 + n) * 9} {' '.join(ITEMS[:3])}" for n in range(12)}
    bodies = [page(f"{B}{n}", text=texts[n]) for n in range(12)]
    copies = [named(f"{A}{n}", f"{B}{n}", texts[n]) for n in true]
    liars = [named(f"{A}{n}", f"{B}{n}", f"spam {n}") for n in lies]
    front = page(A, *(f"{A}{n}" for n in range(12)), *(f"{B}{n}" for n in range(12)))
    crawl = simulate(
        topic(tmp_path, A, delay_s=0.0), site(front, *bodies, *copies, *liars), policy="bfs"
    ).run()
    assert {f"{B}{n}" for n in range(12)} <= set(crawl.urls)


def test_a_page_that_is_left_out_stands_for_no_other(simulate, tmp_path):
    bodies = []
    for n, text in enumerate(ITEMS):
        noindex = {"x_robots_tag": "noindex"} if n > 3 else {}
        link = f"<{A}{n}>; rel=canonical"
        bodies += [
            page(f"{A}{n}", text=text),
            page(f"{A}print/{n}", text=text, link=link, **noindex),
        ]
    front = page(A, *(f"{A}print/{n}" for n in range(6)), *(f"{A}{n}" for n in range(6)))
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), site(front, *bodies), policy="bfs").run()
    assert {f"{A}4", f"{A}5"} <= set(crawl.urls)


def test_rows_tell_where_redirects_led_and_what_pages_call_themselves(simulate, tmp_path):
    web = site(
        page(A, f"{A}old", f"{A}page"),
        moved(f"{A}old", f"{A}new"),
        page(f"{A}new"),
        named(f"{A}page", f"{A}other", "whale"),
    )
    rows = simulate(topic(tmp_path, A), web).run().rows
    points = {url: row["points_to"] for url, row in rows.items()}
    assert points == {A: None, f"{A}old": f"{A}new", f"{A}new": None, f"{A}page": f"{A}other"}


def test_a_redirect_to_a_link_that_waits_adds_what_it_was_found_by(simulate, tmp_path):
    """It waits, found on a page off topic, as a redirect leads there from one that is on topic."""
    web = site(
        page(A, f"{A}later", f"{A}whale", text="trade"),
        page(f"{A}whale", f"{A}whale/old", text="whale whale"),
        moved(f"{A}whale/old", f"{A}later"),
        page(f"{A}later", text="at last"),
    )
    scorer = Apprentice(WhaleClassifier())
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web, scorer=scorer).run()
    assert crawl.urls == [A, f"{A}whale", f"{A}whale/old", f"{A}later"]
    row = crawl.rows[f"{A}later"]
    on_topic = parent_log_odds(WhaleClassifier().classify(Page(A, text="whale")))
    assert row["features"]["in_links"] == 2
    assert row["features"]["parent"] == pytest.approx(on_topic, abs=0.01)
    assert row["depth"] == 1


def test_a_scorer_of_ones_own_sees_a_redirects_target_as_before(simulate, tmp_path):
    web = site(
        page(A, f"{A}old", f"{A}new", text="whale"), moved(f"{A}old", f"{A}new"), page(f"{A}new")
    )
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web, scorer=SimpleLearner()).run()
    assert crawl.rows[f"{A}new"]["outcome"] == "fetched"


def test_amp_variants_are_not_fetched_once_a_host_has_shown_that_they_repeat_its_pages(
    simulate, tmp_path
):
    count, bodies = 40, []
    for n in range(count):
        text = f"<p>whale {chr(97 + n % 26) * (2 + n)} {' '.join(ITEMS[:3])}"
        onward = f"<a href='{A}{n}/amp'></a><a href='{A}{n + 1}'></a>"
        bodies += [
            raw(f"{A}{n}", f"<link rel=amphtml href='{A}{n}/amp'>{text}{onward}"),
            raw(f"{A}{n}/amp", f"<link rel=canonical href='{A}{n}'>{text}"),
        ]
    web = site(page(A, f"{A}0"), *bodies)
    crawl = simulate(topic(tmp_path, A, delay_s=0.0), web, policy="bfs").run()
    variants = [url for url in crawl.urls if url.endswith("/amp")]
    assert len(crawl.urls) - len(variants) == count + 2  # the front page, and a link too many
    assert 3 <= len(variants) <= count / 2
