"""The address of an index of a search server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from focused.errors import ConfigurationError

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
        netloc = _netloc(parts)
    except ValueError as error:
        raise ConfigurationError(f"the server's address cannot be read: {error}") from None
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


def _netloc(parts: SplitResult) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port is None else f"{host}:{parts.port}"
