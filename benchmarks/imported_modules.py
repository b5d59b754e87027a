"""The modules that a plain crawl imports: how many, with how many lines, and who imports them.

``python benchmarks/imported_modules.py`` crawls two pages of a server of its own by ``scrapy crawl
topic``, with a trained model and without optional features, in an interpreter that has imported
nothing. ``--list`` lists the package's modules with their lines and importers.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

ROOT = Path(__file__).resolve().parents[1]
HEAVY = frozenset(
    {
        *("aiohttp", "duckdb", "fsspec", "httpx", "joblib", "lxml", "matplotlib", "numpy"),
        *("pandas", "playwright", "prometheus_client", "pyarrow", "pydantic", "redis", "requests"),
        *("rich", "scipy", "sklearn", "tantivy", "tldextract", "trafilatura"),
    }
)
TOPIC = """
name = "imports"
[seeds]
urls = ["{seed}"]
[training]
directory = ["directory.tsv"]
good = ["Top/Threads"]
model = "imports.joblib"
[scope]
documents = []
javascript = "ignore"
spam = "ignore"
private_addresses = true
[politeness]
user_agent = "FocusedBenchmark/1.0 (+http://127.0.0.1/)"
delay_s = 0.0
[budget]
pages = 2
[output]
folder = "{folder}/out"
"""
_SAMPLES = {
    "Threads": "threads locks processes parallel memory barrier schedule core atomic queue",
    "Cheese": "cheese milk rind cellar goat butter curd salt ripen cream",
}
_SAMPLES_OF_EACH = 20
_PAGE = (
    b"<title>Threads</title><p>Parallel programs run threads and processes. <a href='/2'>more</a>"
)


@dataclass(frozen=True, slots=True)
class ImportedModules:
    """Modules of the package with their lines, and large libraries, at the end of a crawl."""

    lines: Mapping[str, int]
    heavy: Sequence[str]
    pages: int


class Listing:
    """The extension that lists the modules, while a crawl ends."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Listing:
        """Connect."""
        listing = cls()

        def write() -> None:
            Path(crawler.settings["LISTING_FILE"]).write_text(json.dumps(sorted(sys.modules)))

        crawler.signals.connect(write, signals.engine_stopped, weak=False)
        return listing


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 404 if self.path == "/robots.txt" else 200
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        page = _PAGE + self.path.encode()  # a payload that repeats is looked up in the WARC
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def imported_modules(**settings: Any) -> ImportedModules:
    """Crawl, and return what was imported; ``settings`` are added to the crawl's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as name:
            return _crawl(Path(name), server.server_port, settings)
    finally:
        server.shutdown()
        server.server_close()


def _crawl(folder: Path, port: int, settings: Mapping[str, Any]) -> ImportedModules:
    topic, listing = folder / "imports.toml", folder / "modules.json"
    seed = f"http://127.0.0.1:{port}/"
    topic.write_text(TOPIC.format(seed=seed, folder=folder))
    _train(topic)
    given = {
        "LISTING_FILE": listing,
        "EXTENSIONS": json.dumps({"imported_modules.Listing": 1}),
        "FOCUSED_PARSER_PROCESSES": 0,
        **settings,
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "topic", "-a", f"topic={topic}"]
    for setting, value in given.items():
        command += ["-s", f"{setting}={value}"]
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or not listing.exists():
        raise RuntimeError(f"the crawl failed:\n{done.stdout}{done.stderr}")
    listed = json.loads(listing.read_text())
    stats = json.loads((folder / "out" / "stats.json").read_text())
    lines = {
        module: len(path.read_text(encoding="utf-8").splitlines())
        for module in listed
        if module.partition(".")[0] == "focused" and (path := path_of(module)) is not None
    }
    return ImportedModules(lines, sorted(HEAVY & set(listed)), stats["fetched"])


def _train(topic_file: Path) -> None:
    """Train the topic's model on made-up samples."""
    # Not at the top: the crawl imports this module, too.
    from focused.classifier.model_file import replace_model
    from focused.classifier.topic_training import train_topic
    from focused.topic.topic_file import load_topic
    from focused.web.html.parse import parse_page
    from focused.web.page import Fetched, Page

    rng = random.Random(1)
    pages: dict[str, Page] = {}
    lines = []
    for name, words in _SAMPLES.items():
        for number in range(_SAMPLES_OF_EACH):
            url = f"http://{name.lower()}{number}.test/"
            text = " ".join(rng.choices(words.split() + _PAGE.decode().split(), k=100))
            read = parse_page(Fetched(url, 200, {}, f"<p>{text}".encode()))
            assert isinstance(read, Page)
            pages[url] = read
            lines.append(f"Top/{name}\t{url}\t{name}\t{name}\n")
    topic_file.with_name("directory.tsv").write_text("".join(lines))
    topic = load_topic(topic_file)
    replace_model(train_topic(topic, pages.get, now=time.time()), topic.training.model)


def importers(modules: Sequence[str]) -> dict[str, list[str]]:
    """Return by module which of the modules import it when they are imported themselves."""
    found: dict[str, list[str]] = {module: [] for module in modules}
    for module in modules:
        path = path_of(module)
        tree = ast.parse("" if path is None else path.read_text(encoding="utf-8"))
        for node in tree.body:
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            for name in names:
                if name in found and module not in found[name]:
                    found[name].append(module)
    return found


def path_of(module: str) -> Path | None:
    """Return the file of a module of this checkout, None for others."""
    path = ROOT / module.replace(".", "/")
    for each in (path.with_suffix(".py"), path / "__init__.py"):
        if each.is_file():
            return each
    return None


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the modules")
    parser.add_argument("--json", action="store_true", help="print all as JSON")
    options = parser.parse_args()
    found = imported_modules()
    if options.json:
        print(json.dumps(asdict(found)))
        return
    if options.list:
        by = importers(list(found.lines))
        for module, lines in sorted(found.lines.items(), key=lambda each: -each[1]):
            print(f"{lines:5} {module:55} {', '.join(by[module])}")
    print(f"{len(found.lines)} modules, {sum(found.lines.values()):,} lines")
    print(f"libraries: {', '.join(found.heavy)}")


if __name__ == "__main__":
    main()
