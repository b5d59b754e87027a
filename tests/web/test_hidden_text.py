"""Text that a page hides from its readers."""

import pytest

from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page

WORDS = "whales sing in the sea " * 40


def hides(body: str) -> bool:
    page = parse_page(Fetched("http://a.test/", 200, {"content-type": "text/html"}, body.encode()))
    assert isinstance(page, Page)
    return page.hides_text


@pytest.mark.parametrize(
    "attributes",
    ["hidden", 'hidden=""', "style=display:none", 'style="color: red; visibility: hidden"'],
)
def test_most_words_in_a_hidden_element_are_hidden_text(attributes):
    assert hides(f"<p>Buy now<div {attributes}><p>{WORDS}</div>")


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{WORDS}<div hidden>{WORDS}</div><p>{WORDS}",
        "<p>Buy now<div hidden>a few words in a hidden menu</div>",
        f"<p>A text<div style='display:block'>{WORDS}</div>",
        f"<p>The word hidden, and display:none, in a text: {WORDS}",
        f"<p>A text<input type='hidden'> hidden and visibility:hidden {WORDS}",
        f"<p>A text<div hidden><script>{WORDS}</script></div>",
        f"<p>{WORDS}<div hidden><div hidden><div hidden>{WORDS[:400]}</div></div></div>",
    ],
)
def test_little_or_visible_text_is_not_hidden_text(body):
    assert not hides(body)
