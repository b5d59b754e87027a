"""Which requests of scripts are fetched, and which responses are used again."""

import pytest

from focused.rendering.subrequests import (
    DATA_S,
    SCRIPT_S,
    AssetCache,
    RefusalReason,
    Subrequest,
    SubrequestPolicy,
    SubrequestResponse,
    lifetime,
)

POLICY = SubrequestPolicy("https://www.site.example/page")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Subrequest("https://www.site.example/a.js", "script"), None),
        (Subrequest("https://api.site.example/list", "fetch"), None),
        (Subrequest("https://site.example:8443/list", "xhr"), None),
        (Subrequest("https://cdn.jsdelivr.net/npm/vue", "script"), None),
        (Subrequest("https://cdn.jsdelivr.net/data", "fetch"), RefusalReason.THIRD_PARTY),
        (Subrequest("https://tracker.example/t.js", "script"), RefusalReason.THIRD_PARTY),
        (Subrequest("https://site.example.evil.test/a", "fetch"), RefusalReason.THIRD_PARTY),
        (Subrequest("https://site.example@evil.test/a", "fetch"), RefusalReason.THIRD_PARTY),
        (Subrequest("https://www.site.example/a", "fetch", "POST"), RefusalReason.METHOD),
        (Subrequest("https://www.site.example/a.png", "image"), RefusalReason.KIND),
        (Subrequest("https://www.site.example/s", "eventsource"), RefusalReason.KIND),
        (
            Subrequest("https://www.site.example/b", "document", is_navigation=True),
            RefusalReason.NAVIGATION,
        ),
        (Subrequest("file:///etc/passwd", "fetch"), RefusalReason.SCHEME),
        (Subrequest("ftp://www.site.example/", "fetch"), RefusalReason.SCHEME),
        (Subrequest("http://[::1/", "fetch"), RefusalReason.SCHEME),
        (Subrequest("http://127.0.0.1/", "fetch"), RefusalReason.PRIVATE_ADDRESS),
        (Subrequest("http://0x7f.1/", "script"), RefusalReason.PRIVATE_ADDRESS),
        (Subrequest("http://169.254.169.254/", "fetch"), RefusalReason.PRIVATE_ADDRESS),
        (Subrequest("http://localhost/", "xhr"), RefusalReason.PRIVATE_ADDRESS),
        (Subrequest("http://[::ffff:10.0.0.1]/", "xhr"), RefusalReason.PRIVATE_ADDRESS),
    ],
)
def test_only_content_of_the_own_site_is_fetched(request_, reason):
    assert POLICY.refusal(request_) is reason


def test_hosts_of_the_topic_are_allowed_with_their_subdomains():
    policy = SubrequestPolicy("https://a.example/", ("data.test",))
    assert policy.refusal(Subrequest("https://x.data.test/1", "fetch")) is None
    assert policy.refusal(Subrequest("https://other.test/1", "fetch")) is RefusalReason.THIRD_PARTY


def test_a_private_page_reaches_no_other_port_or_machine():
    policy = SubrequestPolicy("http://127.0.0.1:8000/", private_addresses=True)
    assert policy.refusal(Subrequest("http://127.0.0.1:8000/a.js", "script")) is None
    for url in ("http://127.0.0.1:9000/", "http://10.0.0.1/", "http://localhost:8000/"):
        assert policy.refusal(Subrequest(url, "fetch")) is RefusalReason.PRIVATE_ADDRESS


def test_no_cookies_and_no_credentials_are_forwarded():
    headers = {"cookie": "a=b", "authorization": "Basic x", "accept": "*/*", "origin": "https://a"}
    assert Subrequest("https://a/", "fetch", "GET", headers).forwarded_headers == {
        "accept": "*/*",
        "origin": "https://a",
    }


@pytest.mark.parametrize(
    ("kind", "status", "headers", "seconds"),
    [
        ("script", 200, {}, SCRIPT_S),
        ("fetch", 200, {}, DATA_S),
        ("fetch", 200, {"cache-control": "max-age=10"}, 10),
        ("fetch", 200, {"cache-control": "public, MAX-AGE=60", "age": "20"}, 40),
        ("script", 200, {"cache-control": "max-age=0"}, 0),
        ("script", 200, {"cache-control": "no-store"}, 0),
        ("script", 200, {"cache-control": "private, no-cache"}, 0),
        ("script", 200, {"vary": "*"}, 0),
        ("script", 200, {"cache-control": "max-age=999999999"}, 86_400),
        ("fetch", 200, {"cache-control": "max-age=31536000000"}, 86_400),
        ("fetch", 200, {"cache-control": "max-age=60", "age": "9" * 400}, 0),
        ("script", 500, {}, 0),
        ("fetch", 404, {}, DATA_S),
    ],
)
def test_responses_stay_fresh_as_they_say(kind, status, headers, seconds):
    assert lifetime(kind, status, headers) == seconds


def _response(size: int) -> SubrequestResponse:
    return SubrequestResponse(200, {}, b"x" * size)


def test_a_cached_response_is_used_until_it_is_stale():
    now = 100.0
    cache, asked = AssetCache(clock=lambda: now), Subrequest("https://a/a.js", "script")
    cache.put(asked, _response(5))
    now += SCRIPT_S - 1
    found = cache.get(asked)
    assert found is not None
    assert found.is_cached
    now += 1
    assert cache.get(asked) is None


def test_the_cache_drops_what_was_used_longest_ago():
    cache = AssetCache(max_bytes=100)
    asked = [Subrequest(f"https://a/{n}.js", "script") for n in range(6)]
    for each in asked[:4]:
        cache.put(each, _response(25))
    assert cache.get(asked[0]) is not None
    cache.put(asked[4], _response(25))
    kept = [n for n, each in enumerate(asked) if cache.get(each) is not None]
    assert kept == [0, 2, 3, 4]


def test_a_huge_response_does_not_empty_the_cache():
    cache = AssetCache(max_bytes=100)
    small, huge = Subrequest("https://a/a.js", "script"), Subrequest("https://a/b.js", "script")
    cache.put(small, _response(20))
    cache.put(huge, _response(90))
    assert cache.get(small) is not None
    assert cache.get(huge) is None
