"""The spool keeps whole groups of documents across crashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from focused.corpus import spool
from focused.corpus.spool import append_documents, read_documents, repair_spool
from focused.corpus.stored_documents import StoredDocument
from focused.web.html.document import Document
from focused.web.html.text_structure import PARAGRAPH, TextBlock

DOCUMENTS = [
    StoredDocument(n, Document((TextBlock(PARAGRAPH, f"whale {n}"),)), "" if n else "no-text")
    for n in range(7)
]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "GROUP_DOCUMENTS", 3)


def test_documents_come_back_in_order(tmp_path: Path) -> None:
    done: list[int] = []
    append_documents(tmp_path / "spool", DOCUMENTS, done.append)
    assert list(read_documents(tmp_path / "spool")) == DOCUMENTS
    assert done == [3, 3, 1]
    assert list(read_documents(tmp_path / "missing")) == []


@pytest.mark.parametrize("lost", [1, 20])
def test_a_group_that_was_cut_short_is_removed(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "spool"
    append_documents(path, DOCUMENTS[:6], lambda done: None)
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    assert repair_spool(path) == 3
    append_documents(path, DOCUMENTS[3:6], lambda done: None)
    assert path.read_bytes() == whole


def test_a_damaged_group_ends_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    append_documents(path, DOCUMENTS, lambda done: None)
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    assert repair_spool(path) == 6
    assert len(list(read_documents(path))) == 6


def test_an_export_that_has_no_spool_begins_at_the_first_page(tmp_path: Path) -> None:
    assert repair_spool(tmp_path / "missing") == 0
