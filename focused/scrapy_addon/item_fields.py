"""The fields that FOCUSED_ITEM_FIELDS names."""

from __future__ import annotations

from collections.abc import Sequence

from focused.errors import ConfigurationError, missing_extra

ITEM_FIELDS = ("text", "markdown", "published", "modified", "authors", "licences", "robots")
"""The fields that FOCUSED_ITEM_FIELDS may name."""


def parse_item_fields(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in FOCUSED_ITEM_FIELDS: a list, or a text with commas.

    Raises ConfigurationError for an unknown name, MissingExtraError without the extra ``corpus``.
    """
    names = value.split(",") if isinstance(value, str) else value or ()
    if not isinstance(names, list | tuple):
        raise ConfigurationError(f"FOCUSED_ITEM_FIELDS: {value!r} must be a list or a text")
    fields = tuple(dict.fromkeys(str(name).strip() for name in names if str(name).strip()))
    unknown = [name for name in fields if name not in ITEM_FIELDS]
    if unknown:
        raise ConfigurationError(
            f"FOCUSED_ITEM_FIELDS: there is no field {unknown[0]!r}; known are "
            f"{', '.join(ITEM_FIELDS)}"
        )
    if fields:
        from focused.web.html.main_text import require_extraction  # only for these fields

        try:
            require_extraction()
        except ModuleNotFoundError as error:
            raise missing_extra(error, "FOCUSED_ITEM_FIELDS") or error from None
    return fields
