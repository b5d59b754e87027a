"""Load the classifier of a model file without executing code, and tell when it is out of date.

A pickle can call any function, so an untrusted model could execute code. Focused's files
contain dicts, lists, strings, numbers and bytes only (arrays as raw bytes).
:func:`read_model_file` scans the opcodes and refuses all but the few that build such data,
unpickles with global names forbidden, and checks shapes, types and a digest. An unpickler
that allows NumPy's constructors would be weaker: object arrays contain a second pickle.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import pickletools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import CalibrationCurve, ThresholdTarget
from focused.classifier.semantic_scorer import LeadScorer, SemanticScorer
from focused.classifier.topic_classifier import (
    ROOT_NODE,
    Calibration,
    LinearTopicClassifier,
    Taxonomy,
)
from focused.directory import samples_digest
from focused.errors import ModelError
from focused.text.documents import Vocabulary
from focused.text.static_embedding import StaticEmbedding, has_embedding, load_embedding
from focused.topic import Topic

if TYPE_CHECKING:
    from focused.spam.spam_classifier import SpamClassifier

MODEL_FORMAT = "focused topic model"
MODEL_FORMAT_VERSION = 5
MAX_MODEL_BYTES = 500_000_000
ARRAY_DTYPE = "<f4"

_MODEL_NAME_CHARS = 12
_SPAM_ARRAYS = ("spam_knots", "spam_values", "popular_frequencies", "popular_pairs")

# These build dicts, lists, strings, numbers and bytes; none can name or call anything.
# BINPUT and LONG_BINPUT are excluded: ten bytes could allocate 64 GB of memo.
_PLAIN_OPCODES = """
    PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET
    EMPTY_DICT SETITEM SETITEMS EMPTY_LIST APPEND APPENDS
    SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8
    NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT
"""


@dataclass(frozen=True, slots=True)
class ModelContent:
    """The content of a model file: metadata as JSON, and arrays by name.

    ``name`` is that of the model in labels and crawls: a prefix of the file's SHA-256.
    """

    meta: dict[str, Any]
    arrays: dict[str, NDArray[np.float32]]
    name: str


def read_model_file(path: Path) -> ModelContent:
    """Read a model file without executing code, and check its digest.

    Raises :class:`ModelError` for a file that is missing, damaged, foreign, unsafe, or newer
    than this program.
    """
    data = _read_file(path)
    content = _unpickle_plain_data(data, path)
    version = content.get("version")
    if content.get("format") != MODEL_FORMAT or type(version) is not int:
        _raise_refused(path, "is not a Focused topic model")
    if version != MODEL_FORMAT_VERSION:
        newer = version > MODEL_FORMAT_VERSION
        advice = "update the program or train again" if newer else "train again"
        raise ModelError(
            f"{path} has model format {version!r}; this program reads "
            f"{MODEL_FORMAT_VERSION}: {advice}"
        )
    with raising_model_errors(path):
        meta, arrays = content["meta"], content["arrays"]
        _check_packed_arrays(arrays)
        if content["digest"] != content_digest(meta, arrays):
            _raise_refused(path, "is damaged (its digest does not match)")
        unpacked = {name: _unpack_array(arrays[name]) for name in arrays}
        return ModelContent(json.loads(meta), unpacked, _digest_prefix(data))


@contextmanager
def raising_model_errors(path: Path) -> Iterator[None]:
    """Raise :class:`ModelError` for errors of a file's content."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error!r}): train again") from error


def load_classifier(path: Path) -> tuple[LinearTopicClassifier, str]:
    """Load the classifier of a model file, and its name in labels and crawls.

    Raises :class:`ModelError` as :func:`read_model_file` does.
    """
    content = read_model_file(path)
    with raising_model_errors(path):
        return build_classifier(content.meta, content.arrays), content.name


def training_urls_path(model: Path) -> Path:
    """Return the path of the list of URLs that a model was trained on."""
    return model.with_suffix(".urls")


def training_urls_head(digest: str) -> str:
    """Return the first line of a list that has the URLs of all samples with this digest."""
    return f"# samples {digest}"


def _digest_prefix(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_MODEL_NAME_CHARS]


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_MODEL_BYTES:
            _raise_refused(path, f"is larger than {MAX_MODEL_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"training.model: cannot read {path}: {error.strerror}; train the topic first"
        ) from error


def _unpickle_plain_data(data: bytes, path: Path) -> dict[str, Any]:
    """Return the dict in a file's ``data`` if it contains plain data only."""
    end, plain = 0, frozenset(_PLAIN_OPCODES.split())
    try:
        for opcode, _, position in pickletools.genops(data):
            if opcode.name not in plain:
                _raise_refused(
                    path, f"holds more than plain data ({opcode.name} at byte {position})"
                )
            end = (position or 0) + 1
        content = _NamelessUnpickler(io.BytesIO(data)).load()
    except ModelError:
        raise
    # Damaged pickles raise nearly anything: IndexError, KeyError, MemoryError, UnicodeError...
    except Exception as error:
        raise ModelError(f"{path} is damaged or cut short ({error}): train again") from error
    if end != len(data) or type(content) is not dict:
        _raise_refused(path, "is not a Focused topic model")
    return content


class _NamelessUnpickler(pickle.Unpickler):
    """Refuses all global names, as a second line of defence."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"it names {module_name}.{global_name}")


def _raise_refused(path: Path, why: str) -> NoReturn:
    raise ModelError(f"{path} {why}; it was not loaded: train again")


def build_classifier(
    meta: dict[str, Any], arrays: dict[str, NDArray[np.float32]]
) -> LinearTopicClassifier:
    """Build the classifier of a model file's content.

    Raises what :func:`raising_model_errors` converts; wrong parts of the spam classifier raise
    :class:`ModelError` at its first use.
    """
    words, categories = tuple(meta["words"]), tuple(meta["categories"])
    parents = tuple(meta["parents"])
    expected = {
        "idf": (len(words),),
        "weights": (len(words),),
        "log_prior": (len(parents),),
        "log_likelihood": (len(parents), len(words)),
        "semantic": arrays["semantic"].shape[:1],
        "lead": arrays["lead"].shape[:1],
        **{name: arrays[name].shape for name in _SPAM_ARRAYS},
    }
    if {name: array.shape for name, array in arrays.items()} != expected:
        raise ValueError("shapes do not fit the words and categories")
    if len(meta["good"]) != len(categories) or not all(type(word) is str for word in words):
        raise ValueError("words or categories of the wrong kind")
    if not _is_tree(parents, len(categories)):
        raise ValueError("the categories make no tree")
    taxonomy = Taxonomy(
        categories,
        tuple(bool(good) for good in meta["good"]),
        parents,
        arrays["log_prior"],
        arrays["log_likelihood"],
    )
    embedding = _load_embedding_of(meta)
    spam = {name: arrays[name] for name in _SPAM_ARRAYS}
    return LinearTopicClassifier(
        Vocabulary(words, arrays["idf"]),
        arrays["weights"],
        _finite_number(meta["bias"]),
        taxonomy,
        _build_calibration(meta["calibration"]),
        None
        if embedding is None
        else _build_semantic_scorer(embedding, meta["semantic"], arrays["semantic"]),
        None
        if embedding is None
        else _build_lead_scorer(embedding, meta["lead_bias"], arrays["lead"]),
        None if meta["spam"] is None else partial(_build_spam_classifier, meta["spam"], spam),
    )


def _load_embedding_of(meta: dict[str, Any]) -> StaticEmbedding | None:
    """Return the embedding table that a model was trained with, or None for a model without one.

    Raises :class:`ModelError` if this installation has another: the calibration relies on it.
    """
    name = meta["semantic"]["embedding"]
    if not name:
        return None
    embedding = load_embedding()
    if embedding is None or embedding.name != name:
        raise ModelError(
            f"training.model: the model uses the embedding table {name}, which this installation "
            "doesn't have: train again"
        )
    return embedding


def _build_semantic_scorer(
    embedding: StaticEmbedding, fields: dict[str, Any], direction: NDArray[np.float32]
) -> SemanticScorer:
    if direction.shape != (embedding.dimensions,):
        raise ValueError("the semantic scorer does not fit the embedding table")
    numbers = {name: _finite_number(fields[name]) for name in ("bias", "slope")}
    return SemanticScorer(embedding, direction.astype(np.float64), **numbers)


def _build_lead_scorer(
    embedding: StaticEmbedding, bias: object, direction: NDArray[np.float32]
) -> LeadScorer | None:
    """Return the lead scorer, or None for a model without one."""
    if not len(direction):
        return None
    if direction.shape != (embedding.dimensions,):
        raise ValueError("the lead scorer does not fit the embedding table")
    return LeadScorer(embedding, direction.astype(np.float64), _finite_number(bias))


def _build_spam_classifier(
    fields: dict[str, Any], arrays: dict[str, NDArray[np.float32]]
) -> SpamClassifier:
    from focused.spam.spam_classifier import POPULAR_WORDS, SIGNALS, PopularWords, SpamClassifier

    words, sites = tuple(fields["words"]), tuple(fields["sites"])
    knots, values = arrays["spam_knots"], arrays["spam_values"]
    frequencies, pairs = arrays["popular_frequencies"], arrays["popular_pairs"]
    if (
        not all(type(word) is str for word in (*words, *sites))
        or len(words) > POPULAR_WORDS
        or frequencies.shape != (len(words),)
        or pairs.shape != (len(words) + 1, len(words) + 1)
        or knots.shape != values.shape
        or knots.shape[:1] != (len(SIGNALS),)
        or not (np.diff(knots) > 0).all()
    ):
        raise ModelError("training.model: the parts of its spam classifier do not fit: train again")
    numbers = {name: _finite_number(fields[name]) for name in ("bias", "good_mean", "spam_mean")}
    return SpamClassifier(
        PopularWords(words, frequencies, pairs), knots, values, **numbers, spam_sites=sites
    )


def _is_tree(parents: tuple[Any, ...], leaves: int) -> bool:
    """Whether each node's parent is a later inner node, or the root."""
    return 0 < leaves <= len(parents) and all(
        type(above) is int
        and (above == ROOT_NODE or (leaves <= above < len(parents) and above > node))
        for node, above in enumerate(parents)
    )


def _build_calibration(fields: dict[str, Any]) -> Calibration:
    curve = fields.pop("curve")
    points, shares = (
        tuple(_finite_number(one) for one in curve.pop(key)) for key in ("points", "shares")
    )
    rising = all(low < high for low, high in pairwise(points))
    if len(points) != len(shares) or not rising or not all(0 < share < 1 for share in shares):
        raise ValueError("a calibration that is no curve")
    numbers = {name: _finite_number(value) for name, value in curve.items()}
    others = {name: _finite_number(value) for name, value in fields.items()}
    return Calibration(CalibrationCurve(**numbers, points=points, shares=shares), **others)


def _finite_number(value: object) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):  # type: ignore[call-overload]  # checked just before
        raise ValueError(f"{value!r} is no number")
    return float(value)  # type: ignore[arg-type]  # checked just before


def _check_packed_arrays(arrays: dict[str, dict[str, Any]]) -> None:
    """Check arrays before unpacking: a list nested many times in itself would exhaust memory."""
    for packed in arrays.values():
        if packed["dtype"] != ARRAY_DTYPE or type(packed["data"]) is not bytes:
            raise ValueError(f"an array that is not of {ARRAY_DTYPE}")
        if len(packed["shape"]) > 2 or not all(type(size) is int for size in packed["shape"]):
            raise ValueError("an array without a shape")


def _unpack_array(packed: dict[str, Any]) -> NDArray[np.float32]:
    array = np.frombuffer(packed["data"], dtype=ARRAY_DTYPE).reshape(packed["shape"])
    if not np.isfinite(array).all():
        raise ValueError("an array with numbers that are not finite")
    return array.astype(np.float32)


def content_digest(meta: str, arrays: dict[str, Any]) -> str:
    """Return the digest of a file's metadata and packed arrays."""
    digest = hashlib.sha256(meta.encode())
    for name in sorted(arrays):
        digest.update(f"\0{name} {arrays[name]['shape']}\0".encode())
        digest.update(arrays[name]["data"])
    return digest.hexdigest()


def load_current_classifier(topic: Topic) -> tuple[LinearTopicClassifier, str]:
    """Load the topic's classifier and its name; ModelError says why it must be trained again.

    Compares content, never file times. A model that the user chose to keep with
    :func:`~focused.classifier.model_file.keep_current_model` is current while the topic is
    unchanged.
    """
    path = topic.training.model
    if not path.exists():
        raise ModelError(f"there is no model yet at {path}")
    content = read_model_file(path)
    with raising_model_errors(path):
        classifier = build_classifier(content.meta, content.arrays)
        report, embedding = content.meta["report"], content.meta["semantic"]["embedding"]
        digest, estimator, wish = report["digest"], report["estimator"], report["trial"]["wish"]
    why = None
    target = ThresholdTarget(topic.training.precision, topic.training.recall)
    if digest != samples_digest(topic.training):
        why = f"the samples or training.good have changed since {path} was made"
    elif estimator != topic.training.estimator:
        why = (
            f"training.estimator is {topic.training.estimator}, "
            f"and {path} was made with {estimator}"
        )
    elif wish != str(target):
        why = f"the threshold is to give {target}, and that of {path} {wish}"
    elif bool(embedding) != (topic.training.embedding and has_embedding()):
        why = f"training.embedding or the embedding table has changed since {path} was made"
    if why is not None and not _is_kept(topic):
        raise ModelError(why)
    return classifier, content.name


def _is_kept(topic: Topic) -> bool:
    try:
        return kept_marker(topic.training.model).read_bytes() == kept_state(topic)
    except OSError:
        return False


def kept_state(topic: Topic) -> bytes:
    """Return what was agreed to: this model, for these samples and options."""
    training = topic.training
    model = hashlib.sha256(training.model.read_bytes()).hexdigest()
    target = ThresholdTarget(training.precision, training.recall)
    lines = (
        f"model {model}",
        f"samples {samples_digest(topic.training)}",
        training.estimator,
        str(target),
    )
    return ("\n".join(lines) + "\n").encode()


def kept_marker(model: Path) -> Path:
    """Return the path of the note that a model is to stay."""
    return model.with_suffix(".stays")
