"""The benchmark of near-duplicates: its copies, look-ups and counts."""

from __future__ import annotations

import random
from pathlib import Path

import duplicates
import duplicates_edits as edits
import pandas as pd
import pytest

from focused.storage.state_store import StateStore
from focused.text.content_signatures import shingles
from focused.web.page import Page

pytestmark = pytest.mark.long

WORDS = [f"word{n}" for n in range(400)]
OTHER = [f"other{n}" for n in range(400)]


def edited(edit: edits.Edit) -> list[str]:
    return edit(WORDS, OTHER, random.Random(1))


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_a_passage_is_as_long_as_its_name_says(share: float) -> None:
    assert len(edited(edits.added(share))) == 400 + round(share * 400)
    assert len(edited(edits.removed(share))) == 400 - round(share * 400)


def test_single_words_differ_all_over_the_page() -> None:
    differing = [n for n, word in enumerate(edited(edits.replaced(0.05))) if word != WORDS[n]]
    assert len(differing) == 20
    assert max(differing) - min(differing) > 200


def test_versions_are_counted_on_and_plain_numbers_are_not() -> None:
    words = ["In", "7.1.9", "of", "1984."]
    assert edits.date_and_version(words, OTHER, random.Random(1))[:4] == [
        "In",
        "8.2.10",
        "of",
        "1984.",
    ]


def test_shuffled_sentences_are_the_same_sentences() -> None:
    words = ["a", "b.", "c", "d.", "e", "f.", "g", "h.", "i", "j."]
    found = " ".join(edits.shuffled(words, OTHER, random.Random(1)))
    assert found != " ".join(words)
    assert all(sentence in found for sentence in ("a b.", "c d.", "e f.", "g h.", "i j."))


def test_a_template_takes_the_place_of_menus() -> None:
    found = edited(edits.template)
    assert found[:300] == OTHER[:300] and found[300:] == WORDS[30:-30]


def test_a_simhash_is_near_for_like_texts_and_far_for_others() -> None:
    one, like = shingles(" ".join(WORDS)), shingles(" ".join(edited(edits.added(0.01))))
    other = shingles(" ".join(OTHER))
    far = (duplicates.simhash(one) != duplicates.simhash(other)).sum()
    near = (duplicates.simhash(one) != duplicates.simhash(like)).sum()
    assert near <= 6 < 15 < far


def test_all_hosts_of_a_site_are_of_one_split() -> None:
    splits = {duplicates.split_of(f"{name}.example.org") for name in ("a", "b", "c", "d", "e", "f")}
    assert len(splits) == 1


def test_copies_are_asked_for_by_edit_and_place(tmp_path: Path) -> None:
    texts = [" ".join(random.Random(n).choices(WORDS, k=300)) for n in range(40)]
    pages = [Page(f"http://h{n % 4}.test/{n}", text=text) for n, text in enumerate(texts)]
    store = StateStore.open(tmp_path, {})
    asked = duplicates.feed(store, pages)
    made = duplicates.made_copies(asked, 2, random.Random(1))
    store.close()
    assert asked.calls.empty
    small = made[(made["edit"] == "passage added, 1%") & (made["place"] == "another host")]
    assert len(small) > 0 and (small["share"] > 0.85).all() and small["right"].all()


def test_a_method_is_held_to_few_false_calls_on_validation() -> None:
    rows = [
        ("", "validation", 0.5),
        ("menus", "test", 0.9),
        ("menus", "test", 0.4),
        ("", "test", 0.6),
    ]
    pairs = pd.DataFrame(rows, columns=["edit", "split", "score"])
    pairs = pairs.assign(**dict.fromkeys(duplicates.METHODS, pairs["score"]))
    found = duplicates.recall_by_method(pairs).iloc[0]
    assert (found["above"], found["menus"], found["false calls"]) == (0.5, 0.5, 1.0)
