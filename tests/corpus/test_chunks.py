"""Chunks are the document in parts, under their headings, with ids that stay."""

from hypothesis import given
from hypothesis import strategies as st

from focused.corpus.page_records import chunk_ids, cut_into_chunks, record_id
from focused.web.html.text_structure import (
    CODE,
    HEADING,
    ITEM,
    PARAGRAPH,
    TABLE,
    TextBlock,
    render_text,
)

TEXTS = st.text(alphabet="abc. 。\n", min_size=1, max_size=400).filter(str.strip)
BLOCKS = st.lists(
    st.builds(
        TextBlock,
        st.sampled_from([HEADING, PARAGRAPH, ITEM, CODE, TABLE]),
        TEXTS,
        st.integers(1, 6),
    ),
    max_size=12,
)


def letters(blocks) -> str:
    return "".join("".join(block.text.split()) for block in blocks)


@given(BLOCKS, st.integers(100, 300))
def test_chunks_are_the_document_and_keep_their_limit(blocks, limit):
    chunks = cut_into_chunks(blocks, limit)
    assert letters(block for chunk in chunks for block in chunk.blocks) == letters(blocks)
    assert all(sum(len(block.text) for block in chunk.blocks) <= limit for chunk in chunks)
    assert all(chunk.blocks for chunk in chunks)


@given(BLOCKS)
def test_cutting_again_gives_the_same_chunks_and_distinct_ids(blocks):
    texts = [render_text(chunk.blocks) for chunk in cut_into_chunks(blocks, 100)]
    assert texts == [render_text(chunk.blocks) for chunk in cut_into_chunks(blocks, 100)]
    ids = list(chunk_ids("http://a.test/", texts))
    assert len(set(ids)) == len(ids)


def test_a_chunk_knows_the_headings_above_it():
    words = "whale " * 15
    blocks = [
        TextBlock(HEADING, "Whales", 1),
        TextBlock(PARAGRAPH, words),
        TextBlock(HEADING, "Blue", 2),
        TextBlock(PARAGRAPH, words),
        TextBlock(PARAGRAPH, words),
        TextBlock(HEADING, "Grey", 2),
        TextBlock(PARAGRAPH, words),
    ]
    chunks = cut_into_chunks(blocks, 100)
    assert [chunk.blocks[0].text for chunk in chunks] == ["Whales", "Blue", words, "Grey"]
    assert [chunk.headings for chunk in chunks] == [
        (),
        ("Whales",),
        ("Whales", "Blue"),
        ("Whales",),
    ]


def test_a_heading_goes_with_the_text_below_it():
    blocks = [
        TextBlock(PARAGRAPH, "a" * 40),
        TextBlock(HEADING, "H", 1),
        TextBlock(PARAGRAPH, "b" * 90),
    ]
    first, second = cut_into_chunks(blocks, 100)
    assert [block.text for block in first.blocks] == ["a" * 40]
    assert second.blocks[0].text == "H"


def test_long_texts_are_cut_after_sentences_and_code_after_lines():
    text = "One sentence here. " * 10
    first, *_ = cut_into_chunks([TextBlock(PARAGRAPH, text.strip())], 100)
    assert first.blocks[0].text.endswith("here.")
    code = "\n".join(f"line{n} = {n}" for n in range(30))
    first, *_ = cut_into_chunks([TextBlock(CODE, code)], 100)
    assert all(line in code.split("\n") for line in first.blocks[0].text.split("\n"))


def test_inline_code_keeps_its_place_in_a_part():
    text = f"{'word ' * 30}call whale now"
    start = text.index("whale")
    block = TextBlock(PARAGRAPH, text, code_spans=((start, start + 5),))
    parts = [part for chunk in cut_into_chunks([block], 100) for part in chunk.blocks]
    ((part, (begin, end)),) = [(part, span) for part in parts for span in part.code_spans]
    assert part.text[begin:end] == "whale"


def test_ids_depend_on_url_text_and_occurrence_alone():
    url = "http://a.test/"
    assert list(chunk_ids(url, ["new", "a", "a"]))[1:] == list(chunk_ids(url, ["a", "a"]))
    assert record_id(url, "a") == record_id(url, "a") != record_id("http://b.test/", "a")
    assert record_id(url, "a") == "3df30e48dc700ed4ecf92c211e7523a8"
