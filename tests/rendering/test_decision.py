"""Whether a page is rendered: by expected gain and cost, learned and revised."""

import msgspec
import pytest

from focused.rendering.decision import (
    MAX_TEMPLATES,
    Evidence,
    HostRendering,
    JavascriptNeed,
    adds_content,
    count_seen,
    is_worth_rendering,
    learn_cost,
    learn_gain,
    url_template,
)
from focused.web.page import Link, Page

LIKELY, POSSIBLE, UNLIKELY = (
    JavascriptNeed.LIKELY,
    JavascriptNeed.POSSIBLE,
    JavascriptNeed.UNLIKELY,
)


def _url(n: int, folder: str = "docs") -> str:
    return f"https://a.example/{folder}/{n}"


def _run(host: HostRendering, need: JavascriptNeed, pages: range, *, gains: bool) -> int:
    """Let pages come, each rendered if that is worth it; return how many were."""
    rendered = 0
    for n in pages:
        count_seen(host, _url(n), need)
        if is_worth_rendering(host, _url(n), need, 1.0, seed=1):
            rendered += 1
            host.rendered += 1
            learn_gain(host, _url(n), need, gained=gains)
            learn_cost(host, 2.0, 1.0)
    return rendered


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("https://a.example/", "/"),
        ("https://a.example/about", "/*"),
        ("https://a.example/docs/", "/docs/*"),
        ("https://a.example/docs/intro", "/docs/*"),
        ("https://a.example/docs/a/b.html", "/docs/*/*"),
        ("https://a.example/find?q=1", "/*?"),
        ("https://a.example/a/b?q=/1", "/a/*?"),
    ],
)
def test_a_template_is_the_first_folder_and_the_depth(url, template):
    assert url_template(url) == template


def test_empty_pages_with_scripts_are_rendered_at_first_and_while_it_helps():
    assert _run(HostRendering(), LIKELY, range(300), gains=True) >= 297


def test_empty_pages_that_stay_empty_are_no_longer_rendered():
    host = HostRendering()
    assert _run(host, LIKELY, range(30), gains=False) > 0
    assert _run(host, LIKELY, range(30, 330), gains=False) <= 30


def test_pages_with_text_are_hardly_rendered():
    assert _run(HostRendering(), UNLIKELY, range(500), gains=False) <= 15


def test_pages_with_text_that_scripts_replace_are_found_by_sampling():
    host = HostRendering()
    _run(host, UNLIKELY, range(500), gains=True)
    assert _run(host, UNLIKELY, range(500, 600), gains=True) >= 95


def test_a_site_that_needs_javascript_no_longer_is_noticed():
    host = HostRendering()
    _run(host, POSSIBLE, range(300), gains=True)
    _run(host, POSSIBLE, range(300, 700), gains=False)
    assert _run(host, POSSIBLE, range(700, 800), gains=False) <= 10


def test_a_page_without_scripts_is_never_rendered():
    host = HostRendering(by_need={"none": Evidence(gained=100.0)})
    assert not is_worth_rendering(host, _url(1), JavascriptNeed.NONE, 1.0, seed=1)


def test_irrelevant_links_are_not_worth_the_cost():
    host = HostRendering(cost=5.0)
    assert not any(is_worth_rendering(host, _url(n), LIKELY, 0.1, seed=1) for n in range(100))
    assert all(is_worth_rendering(host, _url(n), LIKELY, 1.8, seed=1) for n in range(20))


def test_a_host_without_other_links_has_time_for_irrelevant_pages():
    host = HostRendering(cost=5.0)
    assert all(is_worth_rendering(host, _url(n), LIKELY, 0.2, seed=1, queued=3) for n in range(20))
    unlikely = [is_worth_rendering(host, _url(n), UNLIKELY, 0.2, 1, queued=3) for n in range(99)]
    assert not any(unlikely)


def test_expensive_pages_need_relevant_links():
    cheap, dear = HostRendering(), HostRendering()
    learn_cost(cheap, 1.0, 1.0)
    learn_cost(dear, 60.0, 1.0)
    assert is_worth_rendering(cheap, _url(1), LIKELY, 0.8, seed=1)
    assert not is_worth_rendering(dear, _url(1), LIKELY, 0.8, seed=1)


def test_templates_of_a_host_teach_each_other_a_little():
    host = HostRendering()
    for n in range(20):
        learn_gain(host, _url(n), POSSIBLE, gained=False)
    new_host = HostRendering()
    own, other, unknown = (
        sum(is_worth_rendering(each, url, POSSIBLE, 1.0, seed) for seed in range(2_000))
        for each, url in [(host, _url(1)), (host, _url(1, "blog")), (new_host, _url(1))]
    )
    assert own < other < unknown


def test_the_decision_repeats_from_stored_state():
    host = HostRendering()
    _run(host, POSSIBLE, range(40), gains=True)
    stored = msgspec.json.encode(host)
    again = msgspec.json.decode(stored, type=HostRendering)
    assert again == host
    assert [is_worth_rendering(host, _url(n), POSSIBLE, 0.2, 7) for n in range(99)] == [
        is_worth_rendering(again, _url(n), POSSIBLE, 0.2, 7) for n in range(99)
    ]


def test_a_host_with_endless_templates_keeps_few():
    host = HostRendering()
    for n in range(500):
        learn_gain(host, _url(1, f"f{n}"), LIKELY, gained=True)
    assert len(host.by_template) == MAX_TEMPLATES + 1


def test_gain_counts_words_and_links_that_are_new():
    raw = Page("https://a.example/", text="Menu Search", links=(Link("https://a.example/1"),))
    shown = Page(
        "https://a.example/",
        text="Menu Search Menu" + " word" * 30,
        links=(Link("https://a.example/1"), Link("https://a.example/2")),
    )
    assert adds_content(raw, shown)


def test_a_page_that_scripts_only_decorate_gains_nothing():
    text = "word " * 400
    raw = Page("https://a.example/", text=text)
    assert not adds_content(raw, Page(raw.url, text=text + " a few more words" * 5))


def test_a_page_without_any_text_gains_by_little_text():
    shown = Page("https://a.example/", text="word " * 25)
    assert adds_content(None, shown)


def test_a_page_that_stays_empty_gains_nothing():
    assert not adds_content(None, Page("https://a.example/", text="Loading"))
