"""The console's web application: crawl folders as JSON, live events, and commands.

:class:`focused.local_server.LocalApp` guards it. The page shows all that comes from crawled pages
as text; this module sends it as JSON only.

Label pages, retraining, indexing and link graphs are ``focused`` in child processes, so that they
don't block the console, and their failure stays their own. A running crawl swaps in a retrained
model itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from aiohttp import web

from focused.child_processes import python_command, python_environment
from focused.console.crawl_data import CrawlData, Offset, PageQuery
from focused.crawl.steering import decode_command
from focused.errors import ConfigurationError, SearchError, StateError, missing_extra
from focused.installed_features import ConsoleTab, installed_features
from focused.link_graph.measures import best_pages, distill_topic
from focused.link_graph.page_graph import PageGraph, default_graph_folder, read_graph_info
from focused.local_server import (
    Clock,
    LocalApp,
    add_security_headers,
    read_json_body,
)

EVENT_INTERVAL_S = 1.0
_CURVE_EVERY = 5
"""The harvest curve is sent with each n-th event."""

_CURVE_POINTS = 400
_MAX_PAGES = 200
_MAX_HOSTS = 200
_MAX_LINKS = 50
_MAX_ACTIONS = 100
_FILES = {
    "/": ("console.html", "text/html"),
    "/console.js": ("console.js", "text/javascript"),
    "/charts.js": ("charts.js", "text/javascript"),
    "/graph.js": ("graph.js", "text/javascript"),
    "/console.css": ("console.css", "text/css"),
    "/uplot.js": ("uPlot.iife.min.js", "text/javascript"),
    "/uplot.css": ("uPlot.min.css", "text/css"),
}


class ConsoleServer:
    """The console of the crawls in ``folders``, or in folders right below them."""

    def __init__(self, folders: Sequence[Path], clock: Clock) -> None:
        self._roots = folders
        self._clock = clock
        self._crawls: list[CrawlData] = []
        self._known: set[Path] = set()
        self._children = ChildCommands()

    def app(self, host: str = "127.0.0.1") -> LocalApp:
        """Return the web application, to be served at ``host``."""
        crawl = r"/api/crawls/{number:\d{1,6}}"
        app = LocalApp(
            self._clock,
            host,
            "focused.console",
            _FILES,
            [
                web.get("/api/crawls", self._list),
                web.get(f"{crawl}/events", self._events),
                web.get(f"{crawl}/pages", self._pages),
                web.get(f"{crawl}/page", self._page),
                *(
                    web.get(f"{crawl}/{name}", partial(self._read, read))
                    for name, read in _READERS.items()
                ),
                web.get(f"{crawl}/search", self._search),
                web.post(f"{crawl}/index", self._index),
                web.post(f"{crawl}/commands", self._command),
                web.post(f"{crawl}/label", self._label),
                web.post(f"{crawl}/retrain", self._retrain),
                web.get(f"{crawl}/retrain", self._retraining),
                web.get(f"{crawl}/graph", self._graph),
                web.post(f"{crawl}/graph", self._build_graph),
                web.get("/api/feature-tabs", self._list_tabs),
                web.get(f"{crawl}/feature-tabs/{{name}}", self._tab),
            ],
        )
        app.application.on_cleanup.append(self._end_children)
        return app

    def find_crawls(self) -> list[CrawlData]:
        """Return the crawls; numbers of those found before stay as they are."""
        for folder in find_crawl_folders(self._roots):
            if folder not in self._known:
                self._known.add(folder)
                self._crawls.append(CrawlData(folder))
        return self._crawls

    async def _list(self, request: web.Request) -> web.Response:
        crawls = await asyncio.to_thread(lambda: [each.summary() for each in self.find_crawls()])
        return web.json_response({"crawls": crawls})

    def _crawl(self, request: web.Request) -> CrawlData:
        crawls = self._crawls or self.find_crawls()
        try:
            return crawls[int(request.match_info["number"])]
        except IndexError:
            raise web.HTTPNotFound(text="There is no such crawl.") from None

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Stream the crawl's state, an event each second (server-sent events, HTML Standard)."""
        crawl = self._crawl(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        add_security_headers(response)
        await response.prepare(request)
        number = 0
        with contextlib.suppress(ConnectionResetError):
            while True:
                with_curve = number % _CURVE_EVERY == 0
                event = await asyncio.to_thread(_event, crawl, with_curve=with_curve)
                await response.write(f"data: {json.dumps(event)}\n\n".encode())
                number += 1
                await asyncio.sleep(EVENT_INTERVAL_S)
        return response

    async def _pages(self, request: web.Request) -> web.Response:
        wanted = _query(request, PageQuery)
        found = await asyncio.to_thread(self._crawl(request).pages, wanted, _MAX_PAGES)
        return web.json_response(found)

    async def _page(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._crawl(request).page, request.query.get("url", ""))
        if found is None:
            raise web.HTTPNotFound(text="The crawl has no row of this URL yet.")
        return web.json_response(found)

    async def _read(
        self, read: Callable[[CrawlData], dict[str, Any]], request: web.Request
    ) -> web.Response:
        return web.json_response(await asyncio.to_thread(read, self._crawl(request)))

    async def _search(self, request: web.Request) -> web.Response:
        query, folder = _query(request, _SearchQuery), self._crawl(request).folder
        on_topic = "on_topic" in request.query
        found = await asyncio.to_thread(
            search_index, folder, query.text, on_topic=on_topic, offset=query.offset
        )
        return web.json_response({**found, "update": self._children.state("search", folder)})

    async def _index(self, request: web.Request) -> web.Response:
        folder = self._crawl(request).folder
        self._children.run("search", folder, [str(folder)])  # without a query it updates the index
        return web.json_response({})

    async def _command(self, request: web.Request) -> web.Response:
        crawl, body = self._crawl(request), await read_json_body(request, dict[str, Any])
        undoes = body.pop("undoes", None)
        if undoes is not None and not isinstance(undoes, str):
            raise web.HTTPBadRequest(text="undoes must be a string.")
        try:
            command = decode_command(json.dumps(body))
        except ConfigurationError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        if not crawl.is_running():
            raise web.HTTPConflict(
                text="The crawl is not running. Edit the frontier of a stopped crawl by "
                "focused frontier."
            )
        by = f"{_user()}, console"
        sent = crawl.control.send(command, by=by, now=self._clock(), undoes=undoes)
        return web.json_response({"id": sent})

    async def _label(self, request: web.Request) -> web.Response:
        folder = self._crawl(request).folder
        address = await asyncio.to_thread(self._children.open_label_page, folder)
        return web.json_response({"address": address})

    async def _retrain(self, request: web.Request) -> web.Response:
        crawl = self._crawl(request)
        topic_file, recorded_web = crawl.topic_file_and_web()
        if not topic_file or not Path(topic_file).is_file():
            raise web.HTTPConflict(text="The topic file of this crawl no longer exists.")
        web_option = [] if recorded_web is None else ["--web", recorded_web]
        self._children.run("retrain", crawl.folder, [topic_file, *web_option])
        return web.json_response({})

    async def _retraining(self, request: web.Request) -> web.Response:
        state = self._children.state("retrain", self._crawl(request).folder)
        return web.json_response({"retraining": state})

    async def _graph(self, request: web.Request) -> web.Response:
        folder = self._crawl(request).folder
        build = self._children.state("graph", folder)
        report = await asyncio.to_thread(read_link_report, default_graph_folder(folder))
        return web.json_response({"build": build, "graph": report})

    async def _build_graph(self, request: web.Request) -> web.Response:
        folder = self._crawl(request).folder
        self._children.run("graph", folder, ["build", str(folder)])
        return web.json_response({})

    async def _list_tabs(self, request: web.Request) -> web.Response:
        tabs = [{"name": name, "title": tab.title} for name, tab in _feature_tabs().items()]
        return web.json_response({"tabs": tabs})

    async def _tab(self, request: web.Request) -> web.Response:
        tab = _feature_tabs().get(request.match_info["name"])
        if tab is None:
            raise web.HTTPNotFound(text="There is no such tab.")
        headings, rows = await asyncio.to_thread(tab.read, self._crawl(request).folder)
        return web.json_response({"headings": list(headings), "rows": [list(row) for row in rows]})

    async def _end_children(self, app: web.Application) -> None:
        await asyncio.to_thread(self._children.close)


_READERS: Mapping[str, Callable[[CrawlData], dict[str, Any]]] = {
    "hosts": lambda crawl: {"hosts": crawl.hosts(_MAX_HOSTS)},
    "frontier": lambda crawl: crawl.frontier(_MAX_LINKS),
    "models": lambda crawl: {"models": crawl.models()},
}
"""The views that take no arguments."""


def _event(crawl: CrawlData, *, with_curve: bool) -> dict[str, Any]:
    # Actions come first: a status is never older than the actions beside it.
    actions = [msgspec.to_builtins(each) for each in crawl.control.read_actions(_MAX_ACTIONS)]
    running = crawl.is_running()
    live = crawl.live() if running else None
    event: dict[str, Any] = {
        "is_running": running,
        "live": live,
        "totals": None if live else crawl.totals(),
        "actions": actions,
    }
    if with_curve:
        try:
            event["pages"] = crawl.refresh()
            event["curve"] = crawl.harvest_curve(_CURVE_POINTS)
        except StateError as error:
            event["error"] = str(error)
    return event


def _feature_tabs() -> dict[str, ConsoleTab]:
    tabs = {name: each.console_tab for name, each in installed_features().items()}
    return {name: tab for name, tab in tabs.items() if tab is not None}


def find_crawl_folders(roots: Sequence[Path]) -> list[Path]:
    """Return the crawl folders among ``roots`` and right below them, sorted within each root."""
    found = []
    for root in roots:
        candidates = [root, *sorted(path for path in root.glob("*") if path.is_dir())]
        found += [path for path in candidates if (path / "settings.json").is_file()]
    return list(dict.fromkeys(found))


class _SearchQuery(msgspec.Struct):
    text: str = ""
    offset: Offset = 0


_Query = TypeVar("_Query", bound=msgspec.Struct)


def _query(request: web.Request, kind: type[_Query]) -> _Query:
    """Return the query of a request; raises HTTPBadRequest for values that it cannot have."""
    try:
        return msgspec.convert(dict(request.query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise web.HTTPBadRequest(text=f"The query is wrong: {error}.") from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "somebody"


def serve_console(
    folders: Sequence[Path],
    *,
    clock: Clock,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = 0,
) -> None:
    """Serve the console of ``folders`` until SIGINT or SIGTERM.

    Raises ConfigurationError without a crawl. The other arguments are those of
    :class:`focused.local_server.LocalApp`.
    """
    server = ConsoleServer(folders, clock)
    if not server.find_crawls():
        names = ", ".join(map(str, folders))
        raise ConfigurationError(f"{names}: there is no crawl here; name the folder of a crawl")
    server.app(host).serve(port=port, ready=ready)


_RESULTS, _BEST_PAGES = 20, 10


def search_index(crawl: Path, text: str, *, on_topic: bool, offset: int) -> dict[str, Any]:
    """Return hits, their total, and the number of indexed pages; no hits without text.

    ``indexed`` is None without an index. Raises FocusedError for a query that cannot be read.
    """
    found: dict[str, Any] = {"hits": [], "total": 0, "indexed": None}
    try:
        from focused.search.index import CrawlSearch, SearchQuery

        searching = CrawlSearch(crawl)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "search") or error from None
    except SearchError:
        return found
    found["indexed"] = searching.indexed
    if text.strip():
        query = SearchQuery(text, _RESULTS, offset, on_topic=on_topic)
        found |= asdict(searching.search(query))
    return found


def read_link_report(folder: Path) -> dict[str, Any] | None:
    """Return the report of the link graph in ``folder``, None without one.

    ``until`` is when the newest page of the graph was fetched, in seconds since the epoch.
    Raises StateError for a damaged graph.
    """
    info = read_graph_info(folder)
    if info is None:
        return None
    until = max((source.until for source in info.sources), default=None)
    return {"until": until, **_link_report(folder, info.generation)}


@lru_cache(maxsize=8)
def _link_report(folder: Path, generation: int) -> dict[str, Any]:
    """Compute the report of a graph once; ``generation`` changes when it is built again."""
    graph = PageGraph(folder)
    found = distill_topic(graph)
    best = {
        name: [page._asdict() for page in best_pages(graph, found.nodes, scores, _BEST_PAGES)]
        for name, scores in (("authorities", found.authorities), ("hubs", found.hubs))
    }
    return {"pages": len(graph), "links": graph.links, "hosts": len(graph.hosts.names), **best}


_ADDRESS = re.compile(r"http://[^\s#]++#\S++")
_MAX_OUTPUT_CHARS = 20_000
_STOP_S = 5.0


class ChildCommands:
    """The child processes of one console; :meth:`close` ends them."""

    def __init__(self) -> None:
        self._label_pages: dict[Path, tuple[subprocess.Popen[str], str]] = {}
        self._files = ExitStack()
        self._runs: dict[tuple[str, Path], tuple[subprocess.Popen[str], IO[str]]] = {}

    def open_label_page(self, crawl: Path) -> str:
        """Return the address of the crawl's label page, which is started unless it runs.

        Blocks until the pages of the crawl are read. Raises ConfigurationError if it cannot start.
        """
        known = self._label_pages.get(crawl)
        if known is not None and known[0].poll() is None:
            return known[1]
        process = _start(["label", str(crawl), "--no-browser"], subprocess.PIPE)
        assert process.stdout is not None
        line = ""
        for line in process.stdout:
            if found := _ADDRESS.search(line):
                self._label_pages[crawl] = process, found[0]
                return found[0]
        process.wait()
        process.stdout.close()
        message = line.strip().removeprefix("focused: ")
        raise ConfigurationError(message or "the label page ended at once")

    def run(self, command: str, crawl: Path, arguments: Sequence[str]) -> None:
        """Start a command of ``focused`` unless it runs for this crawl."""
        known = self._runs.get((command, crawl))
        if known is not None and known[0].poll() is None:
            return
        output = self._files.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # it does
        self._runs[command, crawl] = _start([command, *arguments], output), output

    def state(self, command: str, crawl: Path) -> dict[str, Any] | None:
        """Return whether the command runs, its exit status and its output; None before any."""
        known = self._runs.get((command, crawl))
        if known is None:
            return None
        process, output = known
        status = process.poll()  # before the output, which is then whole
        output.seek(0)
        text = output.read()[-_MAX_OUTPUT_CHARS:]
        return {"is_running": status is None, "status": status, "output": text}

    def close(self) -> None:
        """End all children."""
        children = [*self._label_pages.values(), *self._runs.values()]
        for process, _ in children:
            process.terminate()
        for process, _ in children:
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._files.close()


def _start(arguments: Sequence[str], output: int | IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        python_command("focused.cli", *arguments),
        # Retraining may fetch samples, by the logins and proxies of the topic.
        env=python_environment(has_secrets=arguments[0] == "retrain"),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C ends the console, which ends them
    )
