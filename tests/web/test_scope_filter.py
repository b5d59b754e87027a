"""Which URLs a topic's scope allows, and the reasons for refusing others."""

from pathlib import Path

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import ConfigurationError
from focused.topic import Output, Politeness, Scope, Seeds, Topic, Training
from focused.web.scope_filter import ScopeFilter, check_seeds_in_scope


def test_an_empty_scope_lets_everything_through():
    assert ScopeFilter(Scope()).refusal_reason("https://a.example/x?y", depth=10_000) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://python.org/", None),
        ("https://docs.python.org/3/", None),
        ("http://docs.python.org:8080/3/", None),
        ("http://me:pass@docs.python.org/3/", None),
        ("https://docs.python.org./3/", None),
        ("https://notpython.org/", "host not allowed"),
        ("https://python.org.evil.example/", "host not allowed"),
        ("https://evil.example/python.org/", "host not allowed"),
        ("https://evil.example/@python.org/", "host not allowed"),
        ("https://org/", "host not allowed"),
    ],
)
def test_an_allowed_host_covers_its_subdomains_and_nothing_else(url, why):
    assert ScopeFilter(Scope(allow_hosts=("python.org",))).refusal_reason(url) == why


def test_a_denied_host_stays_denied_below_an_allowed_one():
    scope = ScopeFilter(Scope(allow_hosts=("python.org",), deny_hosts=("bugs.python.org",)))
    assert scope.refusal_reason("https://old.bugs.python.org/1") == "host denied"
    assert scope.refusal_reason("https://docs.python.org/1") is None


def test_a_numeric_host_with_a_port_is_recognised():
    scope = ScopeFilter(Scope(allow_hosts=("127.0.0.1", "[::1]"), private_addresses=True))
    assert scope.refusal_reason("http://127.0.0.1:8000/") is None
    assert scope.refusal_reason("http://[::1]:8000/") is None
    assert scope.refusal_reason("http://[::2]/") == "host not allowed"


def test_path_patterns_search_path_and_query_but_not_the_host():
    scope = ScopeFilter(Scope(deny_paths=("[?&]print=1", "login")))
    assert scope.refusal_reason("http://a.example/x?y=2&print=1") == "path denied"
    assert scope.refusal_reason("http://a.example/login/") == "path denied"
    assert scope.refusal_reason("http://login.example/x") is None


def test_a_fragment_is_not_searched():
    assert (
        ScopeFilter(Scope(deny_paths=("login",))).refusal_reason("http://a.example/x#login") is None
    )


def test_one_allowed_path_is_enough():
    scope = ScopeFilter(Scope(allow_paths=("^/docs/", "^/$")))
    assert scope.refusal_reason("http://a.example/docs/x") is None
    assert scope.refusal_reason("http://a.example/") is None
    assert scope.refusal_reason("http://a.example/blog/docs/") == "path not allowed"


def test_a_denied_path_stays_denied_when_allowed():
    scope = ScopeFilter(Scope(allow_paths=("^/docs/",), deny_paths=("/old/",)))
    assert scope.refusal_reason("http://a.example/docs/old/x") == "path denied"


def test_the_deepest_allowed_link_is_still_in_scope():
    scope = ScopeFilter(Scope(max_depth=2))
    assert scope.refusal_reason("http://a.example/", depth=2) is None
    assert scope.refusal_reason("http://a.example/", depth=3) == "too deep"


def topic_with(seed: str, scope: Scope) -> Topic:
    return Topic(
        name="t",
        path=Path("t.toml"),
        seeds=Seeds((seed,)),
        training=Training((), (), Path("t.joblib")),
        politeness=Politeness("Bot me@a.example"),
        output=Output(Path("out")),
        scope=scope,
    )


def test_a_seed_outside_the_topics_own_scope_is_a_configuration_error():
    topic = topic_with("https://b.example/", Scope(allow_hosts=("a.example",)))
    with pytest.raises(ConfigurationError, match=r"t\.toml: seeds: https://b.example/ is out of"):
        check_seeds_in_scope(topic)


def test_a_seed_in_capitals_is_in_scope():
    check_seeds_in_scope(topic_with("HTTPS://A.Example", Scope(allow_hosts=("a.example",))))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1:8080/x",
        "http://[::1]:8080/",
        "http://localhost/",
        "http://printer.localhost:631/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_private_addresses_are_out_of_scope_unless_the_topic_lets_them_in(url):
    assert ScopeFilter(Scope()).refusal_reason(url) == "private address"
    assert ScopeFilter(Scope(allow_hosts=("a.example",))).refusal_reason(url) == "private address"
    assert ScopeFilter(Scope(private_addresses=True)).refusal_reason(url) is None


def test_a_private_seed_is_an_error_that_tells_which_key_lets_it_in():
    with pytest.raises(ConfigurationError, match=r"private_addresses = true lets in hosts of your"):
        check_seeds_in_scope(topic_with("http://10.0.0.1/", Scope()))


hosts = st.from_regex(r"[a-z]{1,4}(\.[a-z]{1,4}){0,3}", fullmatch=True)


@given(
    host=hosts,
    other=hosts,
    port=st.sampled_from(["", ":81"]),
    rest=st.text(alphabet="a/.?@:#%&=", max_size=8),
)
def test_the_host_is_cut_out_as_a_url_parser_would(host, other, port, rest):
    url = ada_url.URL(f"http://{host}{port}/{rest}")
    covered = f".{url.hostname}".endswith(f".{other}")
    expected = None if covered else "host not allowed"
    assert ScopeFilter(Scope(allow_hosts=(other,))).refusal_reason(url.href) == expected
