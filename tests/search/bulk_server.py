"""A server on loopback that checks what clients send to OpenSearch, Elasticsearch and Solr.

It reads the requests by the documented grammar (NDJSON of pairs; a JSON list of documents or an XML
``delete``) and stores the documents. It refuses documents whose ``title`` is ``refused``, and
answers the first ``busy`` updates with status 429.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any
from xml.etree import ElementTree

from tests.support.serving import QuietHandler, serving

REFUSED = "refused"


class IndexingServer(ThreadingHTTPServer):
    """Serves the index ``whales`` (bulk) and the core ``/solr/whales``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.documents: dict[str, dict[str, Any]] = {}
        self.mappings: dict[str, Any] | None = None
        self.updates = 0
        self.commits = 0
        self.busy = 0
        self.busy_items = 0
        self.authorization = ""

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"

    def require(self, user: str, password: str) -> None:
        """Refuse requests of others."""
        self.authorization = "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@contextmanager
def indexing_server() -> Iterator[IndexingServer]:
    """Serve until the context ends."""
    server = IndexingServer()
    with serving(server):
        yield server


class _Handler(QuietHandler):
    server: IndexingServer

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        wanted = self.server.authorization
        if wanted and self.headers.get("Authorization") != wanted:
            self._answer(401, {"error": {"reason": "missing credentials"}})
        elif self.command == "GET":
            self._answer(200, {"status": "OK"})
        elif self.command == "HEAD":
            self._answer(404 if self.server.mappings is None else 200, {})
        elif (self.command, path) == ("PUT", "/whales"):
            self.server.mappings = json.loads(body)["mappings"]
            self._answer(200, {"acknowledged": True})
        else:  # the bulk API takes PUT, too
            self._post(path.rstrip("/"), query, body)

    def _post(self, path: str, query: str, body: bytes) -> None:
        if path == "/whales/_refresh":
            self.server.commits += 1
            self._answer(200, {"_shards": {"failed": 0}})
        elif path == "/_bulk":
            self._when_not_busy(lambda: self._bulk(body))
        elif path == "/solr/whales/update":
            self._when_not_busy(lambda: self._solr(query, body))
        else:
            self._answer(404, {"error": f"no such path: {path}"})

    def _when_not_busy(self, work: Any) -> None:
        self.server.updates += 1
        if self.server.busy:
            self.server.busy -= 1
            self._answer(429, {"error": {"reason": "too many requests"}})
        else:
            work()

    def _bulk(self, body: bytes) -> None:
        kind = self.headers["Content-Type"].partition(";")[0]
        assert kind.endswith("json"), kind
        assert body.endswith(b"\n"), "the bulk body must end with a line break"
        lines = [json.loads(line) for line in body[:-1].split(b"\n")]
        items = []
        while lines:
            ((action, about),) = lines.pop(0).items()
            assert about.keys() == {"_index", "_id"} and about["_index"] == "whales", about
            items.append({action: self._item(action, about["_id"], lines)})
        errors = any(next(iter(each.values()))["status"] >= 400 for each in items)
        self._answer(200, {"took": 1, "errors": errors, "items": items})

    def _item(self, action: str, own: str, lines: list[Any]) -> dict[str, Any]:
        if action == "delete":
            status = 404 if self.server.documents.pop(own, None) is None else 200
            return {"_id": own, "status": status}
        assert action == "index", action
        document = lines.pop(0)
        if self.server.busy_items:
            self.server.busy_items -= 1
            return {"_id": own, "status": 429, "error": {"reason": "queue is full"}}
        if document.get("title") == REFUSED:
            error = {"reason": "failed to parse", "caused_by": {"reason": "it is refused"}}
            return {"_id": own, "status": 400, "error": error}
        self.server.documents[own] = document
        return {"_id": own, "status": 201}

    def _solr(self, query: str, body: bytes) -> None:
        if "commit=true" in query or body == b"<commit />":
            self.server.commits += 1
        if self.headers["Content-Type"].startswith("application/json"):
            documents = json.loads(body)
            if any(each.get("title") == REFUSED for each in documents):
                self._answer(400, {"error": {"msg": "it is refused"}})
                return
            self.server.documents |= {each["id"]: each for each in documents}
        elif body.startswith(b"<delete"):
            for own in ElementTree.fromstring(body).iterfind("id"):
                self.server.documents.pop(own.text or "", None)
        self._answer(200, {"responseHeader": {"status": 0}})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        self.respond(
            status,
            json.dumps(value).encode(),
            Content_Type="application/json",
            X_Elastic_Product="Elasticsearch",
        )
