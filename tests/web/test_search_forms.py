"""Which forms are search forms, and what they send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.html.search_forms import SearchForm, find_search_forms
from focused.web.page import Fetched, Link

URL = "https://a.test/page"


def forms(html: str, headers: str = "text/html") -> tuple[SearchForm, ...]:
    return find_search_forms(Fetched(URL, 200, {"content-type": headers}, html.encode()))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<form action=/s><input name=q></form>", SearchForm("https://a.test/s", "q")),
        ("<form><input type=search name=x></form>", SearchForm(URL, "x")),
        (
            "<form role=search action='?lang=en'><input name=text><input type=submit></form>",
            SearchForm(URL, "text", (("lang", "en"),)),
        ),
        (
            "<form action=find.php><input name=search_term><input type=hidden name=db value=all>"
            "<select name=n><option>10<option value=50 selected>fifty</select>"
            "<input type=checkbox name=exact><input type=radio name=by value=t checked></form>",
            SearchForm(
                "https://a.test/find.php", "search_term", (("db", "all"), ("n", "50"), ("by", "t"))
            ),
        ),
        (
            "<form action=/search><input type=hidden name=controller value=search><input "
            "type=hidden name=orderby value=position><input type=hidden name=orderway value=desc>"
            "<input class='form-control border-0' name=search_query></form>",
            SearchForm(
                "https://a.test/search",
                "search_query",
                (("controller", "search"), ("orderby", "position"), ("orderway", "desc")),
            ),
        ),
        (
            "<form action=/find><input name=searchword><select name=ordering><option>newest"
            "</select></form>",
            SearchForm("https://a.test/find", "searchword", (("ordering", "newest"),)),
        ),
        (
            "<base href=//b.test/x/><form action=go><input name=query></form>",
            SearchForm("https://b.test/x/go", "query"),
        ),
    ],
)
def test_a_search_form_sends_one_text_and_its_defaults(html, expected):
    assert forms(html) == (expected,)


@pytest.mark.parametrize(
    "html",
    [
        "<form method=post><input name=q></form>",
        "<form method=dialog><input name=q></form>",
        "<form><input name=q><input name=w></form>",
        "<form><input name=q><input type=password name=p></form>",
        "<form><input name=q><input type=file name=f></form>",
        "<form><input type=email name=q></form>",
        "<form action=/newsletter><input name=search></form>",
        "<form action=/find><input name=q><button>Subscribe</button></form>",
        "<form action=/search><input name=q><input type=hidden name=action value=x>"
        "<input type=submit name=delete value=go></form>",
        "<form action=/search><input name=q><button name=reorder>Go</button></form>",
        "<form action=/search><input name=q><button>Place order</button></form>",
        "<form><textarea name=q></textarea></form>",
        "<form><input name=zip></form>",
        "<form><input type=search></form>",
        "<form action='javascript:find()'><input name=q></form>",
        "<form><input name=q>" + "<input type=checkbox>" * 60 + "</form>",
        "<p>no form",
    ],
)
def test_other_forms_are_never_sent(html):
    assert forms(html) == ()


def test_the_likeliest_form_is_first():
    found = forms(
        "<form action=/a><input name=text></form>"
        "<form action=/b role=search><input type=search name=q></form>"
    )
    assert [form.action for form in found] == ["https://a.test/b", "https://a.test/a"]


FORM = SearchForm("https://a.test/s", "q", (("lang", "en"),))


def test_a_query_is_a_url_that_tells_the_query():
    url = FORM.url("naïve & whale")
    assert url == "https://a.test/s?lang=en&q=na%C3%AFve+%26+whale"
    assert FORM.query_of(url) == "naïve & whale"
    assert FORM.query_of("https://a.test/other?q=x") is None


@given(st.text(min_size=1, max_size=30))
def test_any_query_comes_back_from_its_url(query):
    url = FORM.url(query)
    assert url is None or FORM.query_of(url) == query


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([Link("https://a.test/s?lang=en&q=w&p=2", "Next »")], "https://a.test/s?lang=en&q=w&p=2"),
        ([Link("https://a.test/s?q=w&p=2", "2", rel=("next",))], "https://a.test/s?q=w&p=2"),
        ([Link("https://a.test/s?q=other&p=2", "Next")], None),
        ([Link("https://a.test/s?q=w&sort=date", "by date")], None),
        ([Link("https://a.test/next", "Next")], None),
    ],
)
def test_the_next_page_of_results_has_the_same_query(links, expected):
    assert FORM.next_page("https://a.test/s?lang=en&q=w", tuple(links)) == expected
