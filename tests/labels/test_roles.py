"""Which labels judge and which teach."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from focused.labels.label import Label
from focused.labels.roles import JUDGES_SHARE, judges_lot, judging, role_of, teaching


def label(verdict: str, role: str) -> Label:
    return Label(url=f"{verdict}/{role}", verdict=verdict, role=role, at=0.0)  # type: ignore[arg-type]


ALL = [label(verdict, role) for verdict in ("yes", "no", "skip") for role in ("judge", "teach")]


def test_what_judges_never_teaches() -> None:
    assert {one.url for one in teaching(ALL)} == {"yes/teach", "no/teach"}
    assert {one.url for one in judging(ALL)} == {"yes/judge", "no/judge"}


def test_one_page_in_five_is_the_judges() -> None:
    drawn = sum(role_of(f"https://a.example/{n}") == "judge" for n in range(20_000))
    assert abs(drawn / 20_000 - JUDGES_SHARE) < 0.015


@given(st.text())
def test_a_pages_role_follows_from_its_url_alone(url: str) -> None:
    assert role_of(url) == role_of(url)
    assert (role_of(url) == "judge") == (judges_lot(url) < JUDGES_SHARE)
