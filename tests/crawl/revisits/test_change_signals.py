"""Sitemaps and feeds as change signals, with learned trust."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.crawl.revisits.change_signals import (
    ChangeSignal,
    SignalSource,
    SignalTrust,
    read_change_signals,
)
from focused.web.page import Fetched

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
DAY = 86_400.0
SITEMAP_URL = "https://example.org/sitemap.xml"


def signals(body: str, clock_offset_s: float = 0.0) -> dict[str, ChangeSignal]:
    headers = {"content-type": "application/xml"}
    fetched = Fetched(SITEMAP_URL, 200, headers, body.encode(), received_at=NOW)
    found = read_change_signals(fetched, clock_offset_s)
    assert len({each.url for each in found}) == len(found)
    return {each.url.removeprefix("https://example.org/"): each for each in found}


def sitemap(*entries: tuple[str, str]) -> str:
    urls = "".join(f"<url><loc>https://example.org/{u}</loc>{rest}</url>" for u, rest in entries)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'


def test_a_sitemap_gives_the_times_and_periods_of_its_urls() -> None:
    found = signals(
        sitemap(
            ("a", "<lastmod>2023-11-13T22:13:20+00:00</lastmod><changefreq>Daily</changefreq>"),
            ("b", "<lastmod>2023-11-14</lastmod>"),
            ("c", "<changefreq>never</changefreq>"),
        )
    )
    assert found["a"].changed_at == NOW - DAY
    assert found["a"].period_s == DAY
    assert found["b"].changed_at == 1_699_920_000.0
    assert (found["c"].changed_at, found["c"].period_s) == (None, None)
    assert {each.source for each in found.values()} == {SignalSource.SITEMAP}


def test_an_index_gives_the_times_of_its_sitemaps() -> None:
    body = (
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap>'
        "<loc>https://example.org/one.xml</loc><lastmod>2023-11-14</lastmod>"
        "</sitemap></sitemapindex>"
    )
    assert signals(body)["one.xml"].changed_at == 1_699_920_000.0


@pytest.mark.parametrize(
    "body",
    [
        "<rss version='2.0'><channel><pubDate>Tue, 14 Nov 2023 22:13:20 GMT</pubDate><item>"
        "<link>https://example.org/a</link><pubDate>Mon, 13 Nov 2023 22:13:20 GMT</pubDate>"
        "</item></channel></rss>",
        "<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><item>"
        "<link>https://example.org/a</link><dc:date>2023-11-13T22:13:20Z</dc:date>"
        "</item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><updated>2023-11-14T22:13:20Z</updated><entry>"
        "<link href='https://example.org/a'/><published>2023-11-01T00:00:00Z</published>"
        "<updated>2023-11-13T22:13:20Z</updated></entry></feed>",
    ],
)
def test_a_feed_gives_the_latest_time_of_each_item(body: str) -> None:
    found = signals(body)
    assert list(found) == ["a"]
    assert found["a"].changed_at == NOW - DAY
    assert found["a"].source is SignalSource.FEED


def test_the_latest_time_counts_for_a_url_with_several() -> None:
    body = sitemap(("a", "<lastmod>2023-11-14</lastmod>"), ("a", "<lastmod>2023-11-12</lastmod>"))
    assert signals(body)["a"].changed_at == 1_699_920_000.0


def test_times_in_the_future_are_limited_or_ignored() -> None:
    body = sitemap(("a", "<lastmod>2023-11-15</lastmod>"), ("b", "<lastmod>2024-01-01</lastmod>"))
    found = signals(body)
    assert found["a"].changed_at == NOW
    assert found["b"].changed_at is None


def test_times_of_a_wrong_clock_are_corrected() -> None:
    body = sitemap(("a", "<lastmod>2023-12-14T22:13:20Z</lastmod>"))
    assert signals(body, clock_offset_s=31 * DAY)["a"].changed_at == NOW - DAY


def test_a_page_is_no_signal() -> None:
    assert signals("<html><body><a href='/a'>a</a></body></html>") == {}


def test_what_is_said_is_relative_to_the_last_visit() -> None:
    signal = ChangeSignal("u", SignalSource.SITEMAP, NOW)
    assert signal.says_changed(NOW - 1) is True
    assert signal.says_changed(NOW) is False
    assert ChangeSignal("u", SignalSource.SITEMAP).says_changed(NOW) is None


SAID = ChangeSignal("u", SignalSource.SITEMAP, NOW - 100)
NOT_SAID = ChangeSignal("u", SignalSource.SITEMAP, NOW - 10 * DAY)
PREVIOUS = NOW - DAY


def learned(rows: list[tuple[ChangeSignal, bool]], prior: float = 0.1) -> SignalTrust:
    trust = SignalTrust()
    for signal, changed in rows:
        trust.record(signal, PREVIOUS, NOW, changed=changed, prior=prior)
    return trust


def test_a_reliable_sitemap_is_believed_both_ways() -> None:
    trust = learned([(SAID, True), (NOT_SAID, False)] * 50)
    said = trust.estimate(SAID, PREVIOUS, NOW, prior=0.3)
    assert said.probability > 0.9
    assert said.changed_at == SAID.changed_at
    assert trust.estimate(NOT_SAID, PREVIOUS, NOW, prior=0.3).probability < 0.15
    assert trust.sitemap.precision > 0.9
    assert trust.sitemap.recall > 0.9


def test_a_sitemap_that_always_says_now_loses_its_effect() -> None:
    trust = learned([(SAID, number % 10 == 0) for number in range(200)])
    said = trust.estimate(SAID, PREVIOUS, NOW, prior=0.1)
    assert said.probability < 0.2
    assert said.changed_at is None


def test_a_sitemap_whose_times_never_move_does_not_hide_changes() -> None:
    trust = learned([(NOT_SAID, number % 2 == 0) for number in range(100)], prior=0.5)
    assert trust.estimate(NOT_SAID, PREVIOUS, NOW, prior=0.5).probability > 0.45
    assert trust.sitemap.recall < 0.1


def test_an_entry_without_a_time_changes_nothing() -> None:
    signal = ChangeSignal("u", SignalSource.FEED)
    trust = learned([(signal, True)] * 10)
    assert trust == SignalTrust()
    assert trust.estimate(signal, PREVIOUS, NOW, prior=0.3).probability == 0.3


def test_sources_are_trusted_apart() -> None:
    trust = learned([(SAID, False)] * 20)
    item = ChangeSignal("u", SignalSource.FEED, NOW - 100)
    assert trust.estimate(item, PREVIOUS, NOW, 0.3).probability > 0.6
    assert trust.estimate(SAID, PREVIOUS, NOW, 0.3).probability < 0.15


def test_trust_follows_a_host_that_changes() -> None:
    trust = learned([(SAID, True)] * 200 + [(SAID, False)] * 100)
    assert trust.estimate(SAID, PREVIOUS, NOW, 0.1).probability < 0.2


def test_changefreq_is_a_prior_that_is_corrected_by_what_revisits_find() -> None:
    signal = ChangeSignal("u", SignalSource.SITEMAP, period_s=DAY)
    assert SignalTrust().estimate(signal, PREVIOUS, NOW).probability == pytest.approx(
        0.632, abs=0.01
    )
    rarely = learned([(signal, number % 20 == 0) for number in range(200)])
    assert rarely.estimate(signal, PREVIOUS, NOW).probability < 0.15


@pytest.mark.parametrize("base", [0.05, 0.3])
def test_probabilities_are_calibrated(base: float) -> None:
    """Said changes are right in 80% of cases; what is not said still changes at a tenth."""
    rng = random.Random(1)
    trust = SignalTrust()
    expected = happened = 0.0
    for number in range(4_000):
        signal = SAID if rng.random() < base else NOT_SAID
        changed = rng.random() < (0.8 if signal is SAID else 0.1 * base)
        if number > 200:
            expected += trust.estimate(signal, PREVIOUS, NOW, base).probability
            happened += changed
        trust.record(signal, PREVIOUS, NOW, changed=changed, prior=base)
    assert expected == pytest.approx(happened, rel=0.15)


def test_trust_is_stored_in_few_bytes() -> None:
    trust = learned([(SAID, True), (NOT_SAID, True)] * 20)
    packed = msgspec.msgpack.encode(trust)
    assert len(packed) <= 150
    assert msgspec.msgpack.decode(packed, type=SignalTrust) == trust


@given(
    st.lists(st.tuples(st.sampled_from([SAID, NOT_SAID]), st.booleans()), max_size=30),
    st.floats(0, 1),
)
def test_estimates_are_probabilities(rows: list[tuple[ChangeSignal, bool]], prior: float) -> None:
    trust = learned(rows, prior)
    for signal in (SAID, NOT_SAID):
        assert 0.0 <= trust.estimate(signal, PREVIOUS, NOW, prior).probability <= 1.0
    assert 0.0 <= trust.sitemap.precision <= 1.0
    assert 0.0 <= trust.sitemap.recall <= 1.0
