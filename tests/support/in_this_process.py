"""Stands for parser processes, whose start would take most of the time of a test.

A test module imports the fixture ``in_this_process``.
"""

from __future__ import annotations

from typing import Any

import pytest

from focused.parser_process import HandlerError


class InThisProcess:
    def __init__(self, handler: Any, limits: Any) -> None:
        self._handler = handler

    def ask(self, message: bytes) -> bytes:
        try:
            return self._handler(message)
        except Exception as error:
            raise HandlerError(repr(error)) from error

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extract documents in this process."""
    monkeypatch.setattr("focused.corpus.stored_documents.ParserProcess", InThisProcess)
