"""Loads what processes that are forked from one that has it need not load again."""

from focused.directory.sample_set import background_samples
from focused.text.static_embedding import load_embedding

background_samples()
if (embedding := load_embedding()) is not None:
    embedding.index, embedding.squared_norms  # noqa: B018  # computed once
