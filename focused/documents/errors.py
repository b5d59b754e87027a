"""The error of a document that cannot be converted."""

from __future__ import annotations

from focused.web.page import FailureKind


class DocumentError(Exception):
    """A document that cannot be converted. ``kind`` and ``detail`` say why."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
