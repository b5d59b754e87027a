"""What a crawl uses and does, where its result does not show it."""

from collections.abc import Callable

import pytest

from focused.revisit.policies import RevisitPolicyFactory
from focused.storage.tables import Tables


@pytest.fixture
def use_revisit_policy(monkeypatch: pytest.MonkeyPatch) -> Callable[[RevisitPolicyFactory], None]:
    """Lets crawls use a revisit policy, whatever the topic names."""

    def use(policy: RevisitPolicyFactory) -> None:
        monkeypatch.setattr(
            "focused.crawl.revisits.continuous.find_revisit_policy", lambda name: policy
        )

    return use


@pytest.fixture
def writes_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tables], list[tuple[str, int]]]:
    """Returns a list that gets the table and the bytes of each row written from then on."""

    def begin(tables: Tables) -> list[tuple[str, int]]:
        put, written = tables.put, list[tuple[str, int]]()

        def noted(table: str, key: bytes, value: bytes, **options: bool) -> None:
            written.append((table, len(key) + len(value)))
            put(table, key, value, **options)

        monkeypatch.setattr(tables, "put", noted)
        return written

    return begin
