"""The system's resolver, as far as tests ask it."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest


@dataclass
class SystemResolver:
    """Answers in the place of getaddrinfo(3): with addresses, or with an error."""

    answer: Sequence[str] | BaseException = ()
    asked: list[str] = field(default_factory=list)
    """The names that were looked up."""

    def getaddrinfo(self, name: str, *_: object, **__: object) -> list[object]:
        self.asked.append(name)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return [(0, 0, 0, "", (address, 0)) for address in self.answer]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SystemResolver:
    """The system's resolver, which finds nothing unless a test says otherwise."""
    resolver = SystemResolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
    return resolver
