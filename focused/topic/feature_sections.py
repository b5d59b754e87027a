"""Reads the sections of a topic file that features declare as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import msgspec

from focused.installed_features import installed_features
from focused.topic.toml_table import TomlTable


def declared_sections() -> Mapping[str, type[Any]]:
    """Return the dataclasses of the installed features' sections, by feature."""
    declared = {name: each.section for name, each in installed_features().items()}
    return {name: section for name, section in declared.items() if section is not None}


def read_section(table: TomlTable, kind: type[Any]) -> Any:
    """Return the section as an instance of its dataclass; wrong keys have their default.

    Types are those of msgspec: ``Annotated[int, msgspec.Meta(ge=1)]`` has a bound. A
    ``__post_init__`` may raise ValueError for values that do not fit together.
    """
    hints = get_type_hints(kind, include_extras=True)
    values = {}
    for each in fields(kind):
        if each.name in table.values:
            try:
                values[each.name] = msgspec.convert(table.values[each.name], hints[each.name])
            except msgspec.ValidationError as error:
                table.add_error(each.name, _in_words(error))
    try:
        return kind(**values)
    except ValueError as error:
        table.errors.add(table.name, str(error))
        return kind()


def key_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the keys of a section."""
    return tuple(each.name for each in fields(kind))


def _in_words(error: msgspec.ValidationError) -> str:
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
