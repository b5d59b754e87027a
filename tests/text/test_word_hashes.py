"""Word hashes are those of the tokeniser's words in any script."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from focused.text.tokens import tokenize
from focused.text.word_hashes import LazyHashedTexts, hash_texts, hash_texts_once, hash_word

odd_texts = (
    st.text()
    | st.text(st.sampled_from("aB c-é\u2019中ก\u0301\u00ad\u200d\ud800 \n1"))
    | st.just("x" * 41)
)


@settings(deadline=None)
@given(st.lists(odd_texts, max_size=5))
@example(["Straße \u2014 naïve", "plain words", "", "中文字", "a b", "é"])
@example(["quotes \u201cof\u201d a page", "with \u2192 arrows", "y" * 40, "z" * 41])
def test_the_hashes_of_texts_are_those_of_the_tokenisers_words(texts):
    found = hash_texts(texts)
    assert found.hashes.tolist() == [hash_word(word) for text in texts for word in tokenize(text)]
    assert found.lengths == [len(tokenize(text)) for text in texts]


def test_of_an_endless_text_the_beginning_counts():
    found = hash_texts(["whale " * 100_000])
    assert 33_000 < found.lengths[0] <= 34_000


def test_different_words_have_different_hashes():
    made = [f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzabcd"]
    assert len(set(map(hash_word, made))) == len(made)


def test_lazy_texts_are_hashed_once():
    texts = LazyHashedTexts(["a whale", "the sea"])
    assert list(texts) == ["a whale", "the sea"]
    assert hash_texts_once(texts) is hash_texts_once(texts)
    assert hash_texts_once(texts).hashes.tolist() == hash_texts_once(list(texts)).hashes.tolist()


@settings(deadline=None)
@given(st.lists(odd_texts, max_size=5))
@example(["Straße — NAÏVE", "Plain Words", "", "中文字", "Ꭰꭰ"])
def test_a_word_of_lazy_texts_is_that_of_the_tokeniser(texts):
    lazy = LazyHashedTexts(texts)
    words = [lazy.word(place) for place in range(len(lazy.words.hashes))]
    assert words == [word for text in texts for word in tokenize(text)]
