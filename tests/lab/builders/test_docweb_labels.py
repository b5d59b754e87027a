"""The documentation web's page-level labels."""

import pytest

from focused.errors import ConfigurationError
from focused_lab.builders.docweb_rules import load_topic_rules, page_categories, parse_topic_rules

PARALLEL = "Top/Computers/Parallel_Computing"
STATISTICS = "Top/Science/Math/Statistics"
CRYPTOGRAPHY = "Top/Computers/Security/Cryptography"
HTTP = "Top/Computers/HTTP"
TESTING = "Top/Computers/Software_Testing"
TEXT = "Top/Computers/Text_Processing"


@pytest.mark.parametrize(
    ("url", "category"),
    [
        ("https://docs.python.org/3/library/multiprocessing.html", PARALLEL),
        ("https://en.cppreference.com/w/cpp/thread/mutex/lock.html", PARALLEL),
        ("https://docs.dask.org/en/stable/scheduling.html", PARALLEL),
        ("https://www.postgresql.org/docs/15/parallel-plans.html", PARALLEL),
        ("https://docs.python.org/3/library/statistics.html", STATISTICS),
        ("https://docs.dask.org/en/stable/generated/dask.array.random.normal.html", STATISTICS),
        ("https://pandas.pydata.org/docs/reference/api/pandas.Series.quantile.html", STATISTICS),
        ("https://docs.python.org/3/library/hashlib.html", CRYPTOGRAPHY),
        ("https://www.postgresql.org/docs/15/pgcrypto.html", CRYPTOGRAPHY),
        ("https://docs.djangoproject.com/en/3.2/topics/signing.html", CRYPTOGRAPHY),
        ("https://docs.python.org/3/library/http.cookiejar.html", HTTP),
        ("https://httpd.apache.org/docs/2.4/mod/mod_proxy_http.html", HTTP),
        ("https://git-scm.com/docs/gitprotocol-http.html", HTTP),
        ("https://docs.pytest.org/en/stable/how-to/fixtures.html", TESTING),
        ("https://cmake.org/cmake/help/latest/command/add_test.html", TESTING),
        ("https://www.postgresql.org/docs/15/regress-run.html", TESTING),
        ("https://docs.python.org/3/library/unicodedata.html", TEXT),
        ("https://en.cppreference.com/w/cpp/regex/regex_match.html", TEXT),
        ("https://www.postgresql.org/docs/15/sql-createcollation.html", TEXT),
    ],
)
def test_a_page_about_a_topic_is_labelled_wherever_it_is(url, category):
    assert category in page_categories(url, "A title")


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.python.org/3/library/json.html",
        "https://docs.dask.org/en/stable/changelog.html",
        "https://docs.dask.org/en/stable/generated/dask.dataframe.Series.str.upper.html",
        "https://docs.celeryq.dev/en/stable/history/whatsnew-4.0.html",
        "https://slurm.schedmd.com/testimonials.html",
        "https://en.cppreference.com/w/cpp/container/vector.html",
        "https://pandas.pydata.org/docs/reference/api/pandas.Series.shape.html",
        "https://www.gevent.org/whatsnew_1_3.html",
        "https://flask.palletsprojects.com/en/2.2.x/templating.html",
        "https://httpd.apache.org/docs/2.4/logs.html",
        "https://varnish-cache.org/docs/7.1/phk/dough.html",
        "https://docs.pytest.org/en/stable/announce/release-7.0.0.html",
        "https://cmake.org/cmake/help/latest/command/try_compile.html",
        "https://en.cppreference.com/w/cpp/string/basic_string/append.html",
        "https://www.postgresql.org/docs/15/textsearch-parsers.html",
    ],
)
def test_other_pages_of_the_same_hosts_have_no_label_of_their_own(url):
    assert page_categories(url, "A title") == ()


def test_a_page_can_be_about_two_topics():
    found = page_categories("https://docs.python.org/3/library/ssl.html", "ssl")
    client = page_categories("https://www.postgresql.org/docs/15/auth-cert.html", "Certificates")
    assert found == (CRYPTOGRAPHY,)
    assert set(client) == {CRYPTOGRAPHY, "Top/Computers/Security"}


def test_benchmark_topics_leave_the_categories_above_them_alone():
    found = page_categories("https://docs.aiohttp.org/en/stable/testing.html", "Testing")
    assert set(found) == {HTTP, TESTING}
    assert not any(name.startswith(("Top/Computers/Web", "Top/Computers/Prog")) for name in found)


def test_a_host_the_rules_do_not_name_has_no_labels():
    assert page_categories("https://threading.example.org/multiprocessing.html", "Threads") == ()


def test_a_page_without_a_title_is_a_stub_and_has_no_labels():
    assert page_categories("https://docs.python.org/3/library/threading.html", " ") == ()


def test_scheme_fragment_query_and_index_file_make_no_difference():
    spellings = [
        "https://docs.dask.org/en/stable/",
        "http://docs.dask.org/en/stable/",
        "https://docs.dask.org/en/stable/index.html",
        "https://docs.dask.org/en/stable/index.html#top",
        "https://docs.dask.org/en/stable/?highlight=delayed",
    ]
    assert {page_categories(url, "Dask") for url in spellings} == {(PARALLEL,)}


def test_percent_encoded_paths_are_matched_as_the_page_names_them():
    url = "https://en.cppreference.com/w/cpp/thread/shared_future/operator%3D.html"
    assert page_categories(url, "operator=") == (PARALLEL,)


def test_every_shipped_rule_names_a_host_of_the_map():
    from focused_lab.builders.docweb_rules import load_doc_packages

    hosts = {package.base.split("/")[2] for package in load_doc_packages("full")}
    assert set(load_topic_rules().rules) <= hosts


def test_path_title_and_exception_of_a_rule_must_all_agree():
    topics = parse_topic_rules(
        {
            "topic": [
                {
                    "category": "Top/Bees",
                    "rule": [
                        {
                            "at": "a.example/doc/",
                            "path": "^bee",
                            "title": "Bees",
                            "not": "wasp",
                            "why": "bees",
                        }
                    ],
                }
            ]
        },
        "rules.toml",
    )
    assert topics.categories("http://a.example/doc/bee1", "Bees") == ("Top/Bees",)
    assert topics.categories("http://a.example/doc/bee-wasp", "Bees") == ()
    assert topics.categories("http://a.example/doc/bee1", "Ants") == ()
    assert topics.categories("http://a.example/doc/ant", "Bees") == ()
    assert topics.categories("http://a.example/bee1", "Bees") == ()


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"at": "a.example/", "why": "x", "pat": "y"}, "pat"),
        ({"at": "a.example/"}, "why"),
        ({"at": "https://a.example/", "why": "x"}, "scheme"),
        ({"at": "a.example/", "why": "x", "path": "("}, "path"),
    ],
)
def test_a_bad_rule_is_an_error_that_names_file_and_key(rule, named):
    with pytest.raises(ConfigurationError, match=rf"rules\.toml.*{named}"):
        parse_topic_rules({"topic": [{"category": "Top/X", "rule": [rule]}]}, "rules.toml")
