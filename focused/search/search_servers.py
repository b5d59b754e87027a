"""Send documents to OpenSearch, Elasticsearch or Solr by their own clients.

:func:`connect` returns a :class:`SearchServer`. Documents are replaced by their ids, so sending
twice changes nothing. Requests that a busy server refuses (429, 502, 503, 504) are repeated with
growing pauses.

The id of a page's document is the hash of its URL, so a newer version of the page replaces it; a
chunk's id ends in its number. ``docs/how-to/search-servers.md`` lists the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from focused.corpus.page_selection import url_hash
from focused.corpus.records import CorpusRecord
from focused.errors import ConfigurationError, SearchError

_TYPES: Mapping[str, Sequence[str]] = {
    "keyword": (
        *("url", "host", "domain", "language", "parent", "authors", "licences", "robots"),
        "cluster",
    ),
    "text": ("title", "text", "headings", "anchor", "anchors"),
    "date": ("published", "modified", "fetched_at"),
    "float": ("relevance", "score"),
    "integer": ("depth", "chunk", "chunks", "words"),
    "boolean": ("on_topic", "training"),
}

_COPIED = [name for names in _TYPES.values() for name in names if name != "anchors"]

MAPPINGS: Mapping[str, Any] = {
    "properties": {
        name: {"type": kind, **({"ignore_malformed": True} if kind == "date" else {})}
        for kind, names in _TYPES.items()
        for name in names
    }
}
"""The mappings of a new index in OpenSearch or Elasticsearch."""

Document = dict[str, Any]
"""A document; ``id`` is its id, and no value is None or empty."""


def document_id(url_key: int, chunk: int | None = None) -> str:
    """Return the id of the page with the hash ``url_key``, or of one of its chunks."""
    return f"{url_key:016x}" if chunk is None else f"{url_key:016x}-{chunk}"


def document_of_record(record: CorpusRecord, *, is_chunk: bool) -> Document:
    """Return the document of a page, or of a chunk of it."""
    chunk = record.chunk if is_chunk else None
    anchors = tuple(dict.fromkeys(link.anchor for link in record.in_links if link.anchor))
    return {
        "id": document_id(url_hash(record.url), chunk),
        **_without_empty({name: getattr(record, name) for name in _COPIED}),
        **_without_empty({"anchors": anchors}),
    }


def _without_empty(values: Mapping[str, Any]) -> Document:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value not in ("", (), [], {})
    }


CLIENT_LIBRARIES = {
    "opensearch": "opensearchpy",
    "elasticsearch": "elasticsearch",
    "solr": "pysolr",
}
"""The kinds of servers, and the library of each."""

PASSWORD, API_KEY = "FOCUSED_INDEX_PASSWORD", "FOCUSED_INDEX_API_KEY"
"""Environment variables with secrets."""

_EXAMPLE = "opensearch+https://user@host:9200/INDEX or solr+http://host:8983/solr/CORE"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where documents go; ``str()`` has no secrets.

    ``url`` is that of the server, for Solr with the core; ``index`` is empty for Solr.
    """

    kind: str
    url: str
    index: str
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str | None = None

    def __str__(self) -> str:
        return f"{self.url}/{self.index}".rstrip("/")


def parse_address(
    text: str, environment: Mapping[str, str], ca_certs: str | None = None
) -> ServerAddress:
    """Return the address in ``KIND+SCHEME://[USER[:PASSWORD]@]HOST[:PORT]/PATH``.

    The last part of the path is the index, or Solr's core. ``environment`` may have secrets.
    ``ca_certs`` is a file of certificates to trust. Raises ConfigurationError.
    """
    try:
        parts = urlsplit(text)
        kind, _, scheme = parts.scheme.partition("+")
        parts.port  # noqa: B018  # raises ValueError for one that is no number
    except ValueError as error:
        raise ConfigurationError(f"the server's address cannot be read: {error}") from None
    netloc = parts.netloc.rpartition("@")[2]
    path, _, index = parts.path.strip("/").rpartition("/")
    if kind not in CLIENT_LIBRARIES or scheme not in ("http", "https") or not netloc or not index:
        # The text is not repeated: it may have a password.
        raise ConfigurationError(f"the server's address must be like {_EXAMPLE}")
    if parts.query or parts.fragment:
        raise ConfigurationError("the server's address must end with the name of the index")
    if kind == "solr":
        path, index = f"{path}/{index}".strip("/"), ""
    return ServerAddress(
        kind,
        f"{scheme}://{netloc}/{path}".rstrip("/"),
        index,
        unquote(parts.username or ""),
        unquote(parts.password or "") or environment.get(PASSWORD, ""),
        environment.get(API_KEY, ""),
        ca_certs,
    )


_MAX_REQUEST_BYTES = 10_000_000
_MAX_RETRIES = 6
_MAX_CONNECTS = 2
_MAX_PAUSE_S = 60.0
_TIMEOUT_S = 60.0
_BUSY = (502, 503, 504)
_NOT_FOUND = 404
_SYSTEM_ERROR = re.compile(r"\[Errno -?\d+\] ([^)\"'\]]+)")
_SOLR_STATUS = re.compile(r"\(HTTP (\d{3})\)")


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A document that the server refuses, and its reason."""

    id: str
    reason: str


class SearchServer(Protocol):
    """One index of a search server. All methods raise SearchError if it does not answer."""

    def prepare(self) -> bool:
        """Check the connection, create a missing index; return whether it was created."""

    def send(self, documents: Sequence[Document]) -> list[RejectedDocument]:
        """Index documents, and return those that the server refuses."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents; unknown ids are skipped."""

    def refresh(self) -> None:
        """Make what was sent visible to searches."""

    def close(self) -> None:
        """Close the connections."""


def connect(address: ServerAddress, pause_s: float = 1.0) -> SearchServer:
    """Return the server; nothing is sent yet.

    ``pause_s`` is the pause before the first repetition, which doubles each time. Raises
    ModuleNotFoundError without the client's extra, ConfigurationError for secrets it cannot use.
    """
    if address.api_key and address.kind != "elasticsearch":
        raise ConfigurationError(f"{API_KEY}: {address.kind} has no API keys; use {PASSWORD}")
    match address.kind:
        case "opensearch":
            import opensearchpy
            from opensearchpy import helpers

            client = opensearchpy.OpenSearch(
                [address.url],
                http_auth=(address.user, address.password) if address.user else None,
                ca_certs=address.ca_certs,
                timeout=_TIMEOUT_S,
                **_transport_options(),
            )
            return _BulkServer(address, client, opensearchpy, helpers, pause_s)
        case "elasticsearch":
            import elasticsearch
            from elasticsearch import helpers as elasticsearch_helpers

            # Options that are None would override the client's defaults.
            given = {
                "basic_auth": (address.user, address.password) if address.user else None,
                "api_key": address.api_key,
                "ca_certs": address.ca_certs,
            }
            options: dict[str, Any] = {name: value for name, value in given.items() if value}
            return _BulkServer(
                address,
                elasticsearch.Elasticsearch(
                    [address.url], request_timeout=_TIMEOUT_S, **options, **_transport_options()
                ),
                elasticsearch,
                elasticsearch_helpers,
                pause_s,
            )
        case "solr":
            return _SolrServer(address, pause_s)
        case _:
            raise AssertionError(f"no client of {address.kind}")


def _transport_options() -> dict[str, Any]:
    # The helpers repeat what is answered with 429, with pauses.
    return {"max_retries": 3, "retry_on_timeout": True, "retry_on_status": _BUSY}


class _BulkServer:
    """OpenSearch and Elasticsearch, whose clients have the same helpers."""

    def __init__(
        self,
        address: ServerAddress,
        client: Any,
        library: ModuleType,
        helpers: ModuleType,
        pause_s: float,
    ) -> None:
        self._address = address
        self._client = client
        self._errors = _errors_of(library)
        self._helpers = helpers
        self._pause_s = pause_s

    def prepare(self) -> bool:
        index = self._address.index
        with self._wrapped():
            if self._client.indices.exists(index=index):
                return False
            self._client.indices.create(index=index, body={"mappings": MAPPINGS})
            return True

    def send(self, documents: Sequence[Document]) -> list[RejectedDocument]:
        actions = (
            {"_op_type": "index", "_index": self._address.index, "_id": each["id"], "_source": each}
            for each in documents
        )
        return [
            RejectedDocument(str(result.get("_id", "")), _reason(result))
            for is_ok, result in self._bulk(actions)
            if not is_ok
        ]

    def delete(self, ids: Sequence[str]) -> None:
        actions = (
            {"_op_type": "delete", "_index": self._address.index, "_id": each} for each in ids
        )
        for is_ok, result in self._bulk(actions):
            if not is_ok and result.get("status") != _NOT_FOUND:
                raise SearchError(
                    f"{self._address}: {result.get('_id')} was not deleted: {_reason(result)}"
                )

    def refresh(self) -> None:
        with self._wrapped():
            self._client.indices.refresh(index=self._address.index)

    def close(self) -> None:
        self._client.close()

    def _bulk(self, actions: Iterable[Mapping[str, Any]]) -> Iterator[tuple[bool, dict[str, Any]]]:
        with self._wrapped():
            for is_ok, result in self._helpers.streaming_bulk(
                self._client,
                actions,
                max_chunk_bytes=_MAX_REQUEST_BYTES,
                raise_on_error=False,
                max_retries=_MAX_RETRIES,
                initial_backoff=self._pause_s,
                max_backoff=_MAX_PAUSE_S,
            ):
                (values,) = result.values()
                yield is_ok, values

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        """Raise the client's errors as SearchError."""
        try:
            yield
        except self._errors as error:
            raise SearchError(f"{self._address}: {_message(error)}") from error


def _errors_of(library: Any) -> tuple[type[Exception], ...]:
    if hasattr(library, "OpenSearchException"):
        return (library.OpenSearchException, library.ImproperlyConfigured)
    return (library.ApiError, library.TransportError, ValueError)


def _message(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return f"the server refuses this user (status {status}); {PASSWORD} has the password"
    details = getattr(error, "body", None) or getattr(error, "info", None)
    if isinstance(status, int) and isinstance(details, Mapping):
        return f"status {status}: {_reason(details)}"
    text = " ".join(str(error).split())
    # The clients nest representations of the errors of the libraries below them.
    if (cause := _SYSTEM_ERROR.search(text)) is not None:
        return f"the server cannot be reached: {cause[1]}"
    return text[:500] or type(error).__name__


def _reason(result: Mapping[str, Any]) -> str:
    error = result.get("error") or result.get("exception") or result.get("status")
    if isinstance(error, Mapping):
        cause = error.get("caused_by") or {}
        inner = cause.get("reason") if isinstance(cause, Mapping) else None
        return ": ".join(str(each) for each in (error.get("reason"), inner) if each)
    return str(error)


class _SolrServer:
    """A core or collection of Solr."""

    def __init__(self, address: ServerAddress, pause_s: float) -> None:
        import pysolr
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        self._address = address
        self._solr_error = pysolr.SolrError
        self._request_error = requests.RequestException
        retry = Retry(
            _MAX_RETRIES,
            connect=_MAX_CONNECTS,
            status_forcelist=(429, *_BUSY),
            allowed_methods=None,  # POST, too: documents are replaced by their ids
            backoff_factor=pause_s,
            backoff_max=_MAX_PAUSE_S,
        )
        session = requests.Session()
        session.verify = address.ca_certs or True
        session.mount("http://", HTTPAdapter(max_retries=retry))
        session.mount("https://", HTTPAdapter(max_retries=retry))
        auth = (address.user, address.password) if address.user else None
        self._session = session
        self._solr = pysolr.Solr(address.url, timeout=_TIMEOUT_S, auth=auth, session=session)

    def prepare(self) -> bool:
        """Check the connection; a core must exist."""
        self._call(self._solr.ping)
        return False

    def send(self, documents: Sequence[Document]) -> list[RejectedDocument]:
        """Send documents; where one is refused, halves, because Solr refuses all with it."""
        try:
            self._solr.add(list(documents), commit=False)
        except self._request_error as error:
            raise SearchError(f"{self._address}: {_message(error)}") from error
        except self._solr_error as error:
            if _solr_status(error) != 400:
                raise self._search_error(error) from error
            if len(documents) == 1:
                return [RejectedDocument(documents[0]["id"], _message(error))]
            middle = len(documents) // 2
            return self.send(documents[:middle]) + self.send(documents[middle:])
        return []

    def delete(self, ids: Sequence[str]) -> None:
        if ids:
            self._call(self._solr.delete, id=list(ids), commit=False)

    def refresh(self) -> None:
        self._call(self._solr.commit)

    def close(self) -> None:
        self._session.close()

    def _call(self, function: Any, **options: Any) -> None:
        try:
            function(**options)
        except self._request_error as error:
            raise SearchError(f"{self._address}: {_message(error)}") from error
        except self._solr_error as error:
            raise self._search_error(error) from error

    def _search_error(self, error: Exception) -> SearchError:
        if _solr_status(error) in (401, 403):
            return SearchError(
                f"{self._address}: the server refuses this user; {PASSWORD} has the password"
            )
        return SearchError(f"{self._address}: {_message(error)}")


def _solr_status(error: Exception) -> int | None:
    """Return the status that pysolr's error names; None if there was no answer."""
    found = _SOLR_STATUS.search(str(error))
    return int(found[1]) if found else None
