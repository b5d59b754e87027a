"""Which pages have the same content."""

from hypothesis import given
from hypothesis import strategies as st

from focused.text.content_signatures import content_fingerprint
from focused.web.page import Link, Page


def test_the_same_text_under_another_url_is_the_same_page():
    one = Page("http://a.com/1", title="Title", text="Some text", links=(Link("http://a.com/x"),))
    other = Page("http://b.com/2", title="title ", text="some  TEXT", language="en")
    assert content_fingerprint(one) == content_fingerprint(other)
    assert len(content_fingerprint(one)) == 16


def test_another_word_or_title_is_another_page():
    prints = {
        content_fingerprint(Page("u", title=title, text=text))
        for title, text in [("a", "b"), ("a", "c"), ("b", "b"), ("", "a b"), ("a b", "")]
    }
    assert len(prints) == 5


def test_pages_without_text_are_distinguished_by_their_links():
    one = Page("u", links=(Link("http://a.com/1"),))
    other = Page("u", links=(Link("http://a.com/2"),))
    assert content_fingerprint(one) != content_fingerprint(other)


def test_any_text_has_a_fingerprint():
    assert len(content_fingerprint(Page("u", text="\ud800"))) == 16


odd_letters = st.text("aZ ΣσςİıÄäẞ\u00a0\u2028\x1c\ud800") | st.text()


@given(odd_letters)
def test_neither_case_nor_white_space_counts_in_any_script(text):
    plain = " ".join(text.lower().split())
    prints = {content_fingerprint(Page("u", text=each)) for each in (text, f"  {text}\n", plain)}
    assert len(prints) == 1
