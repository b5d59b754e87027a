"""Labels evaluate or train."""

from hypothesis import given
from hypothesis import strategies as st

from focused.labels.label_file import (
    EVALUATION_SHARE,
    Label,
    evaluation_hash,
    evaluation_labels,
    role_of,
    spam_labels,
    training_labels,
)


def label(verdict: str, role: str) -> Label:
    return Label(url=f"{verdict}/{role}", verdict=verdict, role=role, at=0.0)  # type: ignore[arg-type]


ALL = [
    label(verdict, role)
    for verdict in ("yes", "no", "spam", "skip")
    for role in ("evaluation", "training")
]


def test_evaluation_labels_never_train():
    assert {one.url for one in training_labels(ALL)} == {"yes/training", "no/training"}
    assert {one.url for one in spam_labels(ALL)} == {"spam/training"}
    assert {one.url for one in evaluation_labels(ALL)} == {
        "yes/evaluation",
        "no/evaluation",
        "spam/evaluation",
    }


def test_one_page_in_five_is_for_evaluation():
    drawn = sum(role_of(f"https://a.example/{n}") == "evaluation" for n in range(20_000))
    assert abs(drawn / 20_000 - EVALUATION_SHARE) < 0.015


@given(st.text())
def test_a_pages_role_follows_from_its_url_alone(url):
    assert role_of(url) == role_of(url)
    assert (role_of(url) == "evaluation") == (evaluation_hash(url) < EVALUATION_SHARE)
