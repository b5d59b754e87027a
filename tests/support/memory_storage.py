"""A shared storage in memory."""

from __future__ import annotations

from focused.errors import StorageError


class MemoryStorage:
    """Objects by name."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.is_down = False

    def exists(self, name: str) -> bool:
        self._check()
        return name in self.objects

    def read(self, name: str) -> bytes:
        self._check()
        if name not in self.objects:
            raise StorageError(f"{name} is missing")
        return self.objects[name]

    def write(self, name: str, content: bytes) -> None:
        self._check()
        self.objects[name] = content

    def _check(self) -> None:
        if self.is_down:
            raise StorageError("the storage is unreachable")
