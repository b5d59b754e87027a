"""Whether a site's pages still bring new words."""

import random
from collections.abc import Callable

import pytest

from focused.spam.site_novelty import MIN_PAGES, MIN_WORDS, SiteNovelty
from focused.spam.spam_training import generate_text, shuffle_words, stitch_sentences
from focused.storage.state_store import StateStore
from focused.text.word_hashes import hash_texts
from tests.support.prose import prose_pages

SITE, OTHER = "http://a.test/1", "http://b.test/1"
SOURCES = 20
PAGES = 150
MAX_ROW_BYTES = 4_300


@pytest.fixture
def novelty(store: StateStore) -> SiteNovelty:
    return SiteNovelty(store.tables)


def learn(novelty: SiteNovelty, texts: list[str]) -> float:
    for text in texts:
        novelty.learn(SITE, hash_texts((text,)).hashes)
    return novelty.novelty(SITE)


def written_texts() -> list[str]:
    return [page.text for page in prose_pages() if len(page.text.split()) > 2 * MIN_WORDS]


def made_texts(family: Callable[..., str], count: int = PAGES) -> list[str]:
    rng, sources = random.Random(1), written_texts()[:SOURCES]
    return [family(rng.sample(sources, 6), 300, rng) for _ in range(count)]


def random_letters(sources: list[str], n_words: int, rng: random.Random) -> str:
    return " ".join("".join(rng.choices("abcdefghij", k=9)) for _ in range(n_words))


def test_pages_that_somebody_wrote_are_new_to_the_last(novelty):
    texts = written_texts()
    assert len(texts) > MIN_PAGES
    assert learn(novelty, texts) == 1.0


@pytest.mark.parametrize("family", [generate_text, shuffle_words, stitch_sentences])
def test_text_made_of_few_pages_ends_in_no_novelty(novelty, family):
    assert learn(novelty, made_texts(family)) == 0.0


def test_random_letters_are_no_novelty(novelty):
    assert learn(novelty, made_texts(random_letters)) == 0.0


def test_few_pages_tell_nothing(novelty):
    assert learn(novelty, ["the same words again " * MIN_WORDS] * (MIN_PAGES - 1)) == 1.0


def test_short_pages_count_for_nothing(novelty):
    assert learn(novelty, ["the same few words"] * 2 * MIN_PAGES) == 1.0


def test_sites_are_told_apart(novelty):
    learn(novelty, made_texts(generate_text))
    assert novelty.novelty(OTHER) == 1.0


def test_a_site_of_a_hundred_thousand_words_has_a_small_row(novelty, store):
    learn(novelty, made_texts(random_letters, 350))
    (row,) = (value for _, value in store.tables.scan("site_novelty"))
    assert len(row) <= MAX_ROW_BYTES


def test_what_was_read_survives_a_restart(tmp_path):
    texts = made_texts(generate_text)
    store = StateStore.open(tmp_path / "state", {})
    learn(SiteNovelty(store.tables), texts[:40])
    store.close()
    again = StateStore.open(tmp_path / "state", {})
    interrupted = SiteNovelty(again.tables)
    after = [interrupted.learn(SITE, hash_texts((text,)).hashes) for text in texts[40:]]
    again.close()
    whole = StateStore.open(tmp_path / "other", {})
    uninterrupted = SiteNovelty(whole.tables)
    every = [uninterrupted.learn(SITE, hash_texts((text,)).hashes) for text in texts]
    whole.close()
    assert after == every[40:]
