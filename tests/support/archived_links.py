"""The links of a state, as dicts."""

from collections.abc import Iterator
from typing import Any

from focused.archive.archive import LINK_COLUMNS, link_values
from focused.storage.tables import Tables


def link_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield all link rows, page by page in the order of settling."""
    for values in link_values(tables):
        yield dict(zip(LINK_COLUMNS, values, strict=True))
