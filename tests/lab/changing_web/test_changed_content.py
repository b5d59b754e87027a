"""Specification of the edits that make versions of a page."""

import pytest

from focused_lab.changing_web.changed_content import (
    Edit,
    apply_edits,
    insert_at_end,
    insert_at_top,
    insert_in_head,
    link_targets,
    paragraph_words,
    remove_links,
)

TEXTS = [f"Paragraph {number} tells about bread and butter and cheese." for number in range(20)]
PAGE = (
    "<html><head><title>Food</title></head><body><h1>Food</h1>"
    + "\n".join(f"<p class=text>{text}</p>" for text in TEXTS)
    + "</body></html>"
).encode()
DONORS = [tuple(f"the quick brown fox jumps over {n} dogs.".encode().split()) for n in range(9)]


def paragraphs(body: bytes) -> int:
    return body.count(b"<p")


def test_without_edits_a_page_stays_as_it_is():
    assert apply_edits(PAGE, [], DONORS) == PAGE


@pytest.mark.parametrize(
    ("added", "deleted", "expected"),
    [(0.5, 0.0, 30), (0.0, 0.5, 10), (0.25, 0.25, 20), (0.0, 1.0, 1), (1.0, 1.0, 20)],
)
def test_the_number_of_paragraphs_is_proportional_to_lines(added, deleted, expected):
    edited = apply_edits(PAGE, [Edit("one", added, deleted)], DONORS)
    assert paragraphs(edited) == expected
    kept = sum(text.encode() in edited for text in TEXTS)
    assert kept == 20 - round(20 * deleted)


def test_a_change_of_less_than_a_paragraph_adds_a_sentence():
    edited = apply_edits(PAGE, [Edit("one", 0.001, 0.001)], DONORS)
    assert all(text.encode() in edited for text in TEXTS)
    assert len(PAGE) < len(edited) < len(PAGE) + 300


def test_equal_edits_give_equal_pages_and_other_keys_others():
    edits = [Edit("one", 0.1, 0.1), Edit("two", 0.0, 0.0)]
    assert apply_edits(PAGE, edits, DONORS) == apply_edits(PAGE, edits, DONORS)
    assert apply_edits(PAGE, edits, DONORS) != apply_edits(PAGE, [Edit("1", 0.1, 0.1)], DONORS)


def test_each_of_many_edits_changes_the_page_and_none_lets_it_grow_without_end():
    edits = [Edit(str(number), 0.3, 0.05) for number in range(200)]
    versions = [apply_edits(PAGE, edits[:count], DONORS) for count in range(0, 201, 20)]
    assert len(set(versions)) == len(versions)
    assert paragraphs(versions[-1]) <= 50


@pytest.mark.parametrize("body", [b"", b"no tags", b"<body><p>never closed", b"</p></body></body>"])
def test_a_page_without_paragraphs_gets_one_at_its_end(body):
    edited = apply_edits(body, [Edit("one", 0.5, 0.5)], [])
    assert paragraphs(edited) == paragraphs(body) + 1
    assert edited.startswith(body.removesuffix(b"</body>"))


def test_paragraphs_with_links_stay():
    body = b"<p>One</p><p>See <a href=two>two</a>.</p><p>Three</p>"
    edited = apply_edits(body, [Edit("one", 0.0, 1.0)], DONORS)
    assert b"<p>See <a href=two>two</a>.</p>" in edited
    assert b"<p>One</p>" not in edited


def test_hidden_links_vanish_and_unlinked_ones_keep_their_text():
    body = (
        b"""<A class=x HREF="a.html">A</a>, <a href='b.html'><b>B</b></a>, <a href=c.html>C</a>"""
    )
    assert link_targets(body) == [b"a.html", b"b.html", b"c.html"]
    removed = remove_links(body, {b"a.html"}, {b"b.html"})
    assert removed == b", <b>B</b>, <a href=c.html>C</a>"


def test_link_elements_are_removed_too():
    body = b'<link rel="next" title="A" href="a.html"/><link href="style.css">'
    assert link_targets(body) == [b"a.html", b"style.css"]
    assert remove_links(body, {b"a.html"}, ()) == b'<link href="style.css">'
    assert remove_links(body, (), {b"a.html"}) == b'<link href="style.css">'


def test_words_of_a_paragraph_have_no_markup():
    body = b"<p>One <b>two</b> three&nbsp;four, five six seven eight.</p><p>Too short</p>"
    assert paragraph_words(body) == [
        (b"One", b"two", b"three", b"four,", b"five", b"six", b"seven", b"eight.")
    ]


def test_boilerplate_is_inserted_at_the_edges_of_the_body():
    assert insert_at_top(b"<body id=x>text</body>", b"-") == b"<body id=x>-text</body>"
    assert insert_at_end(b"<body>text</body>", b"-") == b"<body>text-</body>"
    assert insert_in_head(b"<title>a</title><h1>", b"-") == b"<title>a</title>-<h1>"
    assert insert_in_head(b"text", b"-") == b"text"
