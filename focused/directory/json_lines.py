"""JSON Lines: one sample a line, an object each.

For example::

    {"category": "Top/Food/Cheese", "url": "https://cheese.example/brie", "title": "Brie"}
    {"category": "Top/Other", "text": "The page itself, which needs no address then."}

``category`` is required, and ``url``, ``text`` or both. ``title``, ``description`` and
``weight`` (a number above 0) may be given; other keys are not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from focused.directory.entry import DirectoryEntry, category_path, own_address
from focused.directory.opening import numbered_lines
from focused.errors import ConfigurationError
from focused.web.url import normalise


class _Line(msgspec.Struct):
    category: str
    url: str | None = None
    title: str | None = None
    description: str | None = None
    text: str | None = None
    weight: float = 1.0


_decoder = msgspec.json.Decoder(_Line)


def read_json_lines(path: Path) -> Iterator[DirectoryEntry]:
    """The samples of one file, in order.

    Raises :class:`ConfigurationError` naming file and line for a file that
    cannot be read or a line that is no sample.
    """
    for number, text in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            line = _decoder.decode(text)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{where}: {error}") from error
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise ConfigurationError(f"{where}: no JSON object in one line: {error}") from error
        yield _entry(line, where)


def _entry(line: _Line, where: str) -> DirectoryEntry:
    category, text = category_path(line.category), (line.text or "").strip()
    if not category:
        raise ConfigurationError(f"{where}: the category is empty")
    if not line.url and not text:
        raise ConfigurationError(f"{where}: neither url nor text is given")
    if not (math.isfinite(line.weight) and line.weight > 0):
        raise ConfigurationError(f"{where}: weight must be a number above 0, not {line.weight}")
    url = normalise(line.url) if line.url else own_address(text.encode())
    if url is None:
        raise ConfigurationError(f"{where}: {line.url!r} is no http or https address")
    return DirectoryEntry(
        category,
        url,
        (line.title or "").strip(),
        (line.description or "").strip(),
        line.weight,
        text,
    )
