"""The fetched pages of a link graph with their relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RatedPages:
    """Pages that were fetched, by node, ascending; ``relevance`` is NaN where it is unknown."""

    nodes: NDArray[np.int64]
    relevance: NDArray[np.float64]
    on_topic: NDArray[np.bool_]
    training: NDArray[np.bool_]

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Make them from a table with these columns."""
        return cls(
            table["nodes"].to_numpy().astype(np.int64),
            table["relevance"].to_numpy().astype(np.float64),
            table["on_topic"].to_numpy().astype(np.bool_),
            table["training"].to_numpy().astype(np.bool_),
        )

    def to_table(self) -> pa.Table:
        """Return them as a table."""
        names = ("nodes", "relevance", "on_topic", "training")
        return pa.table({name: getattr(self, name) for name in names})
