"""The benchmark of near-duplicates: its copies and look-ups."""

import random

import duplicates
import pytest

from focused.crawl.dedup.duplicates import NearDuplicateIndex
from focused.web.page import Page

pytestmark = pytest.mark.long

WORDS = [f"word{n}" for n in range(400)]
OTHER = [f"other{n}" for n in range(400)]


def edited(edit: duplicates.Edit) -> list[str]:
    return edit(WORDS, OTHER, random.Random(1))


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_a_passage_is_as_long_as_its_name_says(share):
    assert len(edited(duplicates.added(share))) == 400 + round(share * 400)
    assert len(edited(duplicates.removed(share))) == 400 - round(share * 400)


def test_single_words_differ_all_over_the_page():
    differing = [n for n, word in enumerate(edited(duplicates.replaced(0.05))) if word != WORDS[n]]
    assert len(differing) == 20
    assert max(differing) - min(differing) > 200


def test_versions_are_counted_on_and_plain_numbers_are_not():
    words = ["In", "7.1.9", "of", "1984."]
    assert duplicates.date_and_version(words, OTHER, random.Random(1))[:4] == [
        "In",
        "8.2.10",
        "of",
        "1984.",
    ]


def test_shuffled_sentences_are_the_same_sentences():
    words = ["a", "b.", "c", "d.", "e", "f.", "g", "h.", "i", "j."]
    found = " ".join(duplicates.shuffled(words, OTHER, random.Random(1)))
    assert found != " ".join(words)
    assert all(sentence in found for sentence in ("a b.", "c d.", "e f.", "g h.", "i j."))


def test_a_template_takes_the_place_of_menus():
    found = edited(duplicates.template)
    assert found[:300] == OTHER[:300] and found[300:] == WORDS[30:-30]


def test_all_hosts_of_a_site_are_of_one_split():
    splits = {duplicates.split_of(f"{name}.example.org") for name in ("a", "b", "c", "d", "e", "f")}
    assert len(splits) == 1


def test_copies_are_asked_for_by_edit_and_place(store):
    texts = [" ".join(random.Random(n).choices(WORDS, k=300)) for n in range(40)]
    pages = [Page(f"http://h{n % 4}.test/{n}", text=text) for n, text in enumerate(texts)]
    index = NearDuplicateIndex(store.tables)
    calls = duplicates.index_pages(index, store, pages)
    made = duplicates.look_up_copies(index, pages, 2, random.Random(1))
    assert calls.empty
    small = made[(made["edit"] == "passage added, 1%") & (made["place"] == "another host")]
    assert len(small) > 0 and (small["share"] > 0.85).all() and small["right"].all()
