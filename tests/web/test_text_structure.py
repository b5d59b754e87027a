"""Blocks of text as plain text and as Markdown, in which a page's text stays text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from focused.web.html.text_structure import (
    CODE,
    HEADING,
    ITEM,
    PARAGRAPH,
    QUOTE,
    TABLE,
    TextBlock,
    clean_line,
    clean_text,
    render_markdown,
    render_text,
)

COMMON_MARK = MarkdownIt("commonmark").enable("table")
HOSTILE = st.text(alphabet="*_`[]()<>!#|&;-+=~$.1 ax:/\\\n", max_size=60).map(clean_text)


def html(*blocks: TextBlock) -> str:
    return COMMON_MARK.render(render_markdown(blocks))


def test_each_kind_of_block_has_its_markup():
    blocks = [
        TextBlock(HEADING, "Whales", 2),
        TextBlock(PARAGRAPH, "Say whale here.", 0, code_spans=((4, 9),)),
        TextBlock(ITEM, "blue", 1),
        TextBlock(ITEM, "of the south", 2),
        TextBlock(ITEM, "first", 1, 1),
        TextBlock(CODE, "a  = 1\n\nb", 0, language="python"),
        TextBlock(TABLE, "name\tlength\nblue\t30"),
        TextBlock(QUOTE, "Call me."),
    ]
    assert render_markdown(blocks) == (
        "## Whales\n\nSay `whale` here.\n\n-   blue\n    -   of the south\n1.  first\n\n"
        "```python\na  = 1\n\nb\n```\n\n"
        "| name | length |\n| --- | --- |\n| blue | 30 |\n\n> Call me."
    )
    rendered = html(*blocks)
    for part in ("<h2>Whales</h2>", "<code>whale</code>", "<blockquote>", "<td>30</td>", "<ol>"):
        assert part in rendered
    assert '<code class="language-python">a  = 1\n\nb\n</code>' in rendered
    assert rendered.count("<ul>") == 2


def test_plain_text_keeps_code_and_separates_cells_by_tabs():
    blocks = [
        TextBlock(ITEM, "one", 1),
        TextBlock(ITEM, "two", 2, 7),
        TextBlock(TABLE, "a\tb\n1\t2"),
    ]
    assert render_text(blocks) == "- one\n  7. two\n\na\tb\n1\t2"


@given(HOSTILE)
def test_no_text_becomes_markup(text):
    text = "\n".join(line.strip() for line in text.split("\n") if line.strip())
    line = " ".join(text.split())
    blocks = [
        TextBlock(PARAGRAPH, text),
        TextBlock(HEADING, line, 1),
        TextBlock(ITEM, line, 1),
        TextBlock(TABLE, f"{line}\tx\ny\tz"),
    ]
    rendered = html(*(block for block in blocks if block.text))
    tags = set(re.findall(r"</?(\w+)", rendered))
    assert tags <= {"p", "h1", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "br"}


@given(HOSTILE.filter(lambda text: text.strip("\n ")))
def test_code_comes_back_as_it_was(code):
    block = TextBlock(CODE, code.strip("\n"))
    (fence,) = COMMON_MARK.parse(render_markdown([block]))
    assert fence.type == "fence"
    assert fence.content.rstrip("\n") == block.text.rstrip("\n")


@pytest.mark.parametrize(
    "text", ["\x1b[31mred", "a\x07b", "a\u202eb", "a\x9bb", "a\ufdd0b", "\x00"]
)
def test_characters_that_terminals_or_readers_act_on_are_removed(text):
    assert clean_text(text).isprintable()


def test_a_line_has_no_line_breaks_and_is_limited():
    assert clean_line(" a\r\n b\u2028c\td ", 100) == "a b c d"
    assert clean_line("word " * 100, 9) == "word word"
