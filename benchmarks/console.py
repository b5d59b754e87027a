"""What the console costs a crawl, and how fast its views are on a large one.

    python benchmarks/console.py cost --web WEB --topic TOPIC.toml --work FOLDER
    python benchmarks/console.py scale --work FOLDER

``cost``: crawls of the same pages of a recorded web, in turn unwatched, with the console and a
real Chromium on its overview, unwatched and so on. CPU seconds are those of the crawl's process,
of which ``ticks`` were spent by the extension that writes the status and reads commands, and of
the console's process; the browser's are not counted. Wall time does not matter, but its length
does: the status is written each second.

``scale``: the console on a crawl of 50,000 pages with a million stored links and a million queued
links on 10,000 hosts. Made-up rows are written as a crawl writes them. Of each view: milliseconds
by the clock and of the console's CPU, of the first request and the median of the further ones; the
console's memory before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

from focused.archive.archive import Archive, LinkRow, PageRow
from focused.crawl.policy import LinkOrder, save_link_order
from focused.files import write_json_atomically
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.local_server import TOKEN_HEADER
from focused.storage.state_store import StateStore

_TICK_S = os.sysconf("SC_CLK_TCK")
_HOSTS, _PAGES, _LINKS_A_PAGE, _QUEUED = 10_000, 50_000, 20, 1_000_000
_REQUESTS = 7
_WATCH_TICKS = """
import atexit, sys, time
from focused.scrapy_addon.control_watch import ControlWatch
spent, tick = [0.0, 0], ControlWatch._tick

def timed(self):
    began = time.thread_time()
    tick(self)
    spent[0] += time.thread_time() - began
    spent[1] += 1

ControlWatch._tick = timed
file = sys.argv.pop(1)
atexit.register(lambda: open(file, "w").write(f"{spent[0]} {spent[1]}"))
from focused.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Console:
    """A running console."""

    process: subprocess.Popen[str]
    address: str

    @property
    def cpu_s(self) -> float:
        """CPU seconds of its process."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK_S

    @property
    def memory_mb(self) -> float:
        """Resident memory in 10^6 bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def ask(self, path: str) -> bytes:
        """Return the body of an answer; of a stream, its first event."""
        origin, _, token = self.address.partition("#")
        request = Request(origin.rstrip("/") + path, headers={TOKEN_HEADER: token})  # noqa: S310  # our own server
        with urlopen(request, timeout=300) as answer:  # noqa: S310
            body: bytes = answer.readline() if path.endswith("/events") else answer.read()
        return body


@contextmanager
def running_console(folder: Path) -> Iterator[Console]:
    """Run ``focused ui`` on a folder."""
    command = [sys.executable, "-m", "focused.cli", "ui", str(folder), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield Console(process, process.stdout.readline().split()[-1])
        finally:
            process.terminate()


def main(arguments: Sequence[str]) -> None:
    """Run one of the two benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["cost", "scale"])
    parser.add_argument("--work", type=Path, required=True, help="folder of the crawls")
    parser.add_argument("--web", type=Path, help="recorded web (cost)")
    parser.add_argument("--topic", type=Path, help="topic file (cost)")
    parser.add_argument("--pages", type=int, default=1_000, help="pages of a crawl (cost)")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of crawls (cost)")
    options = parser.parse_args(arguments)
    if options.what == "scale":
        measure_views(options.work)
    else:
        measure_cost(options.work, options.web, options.topic, options.pages, options.rounds)


# Cost


def measure_cost(work: Path, web: Path, topic: Path, pages: int, rounds: int) -> None:
    """Crawl unwatched and watched in turn, and print a line for each crawl."""
    work.mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        for watched in (False, True):
            folder = work / f"{number}-{'watched' if watched else 'unwatched'}"
            print(_crawl(folder, web, topic, pages, watched=watched), flush=True)


def _crawl(folder: Path, web: Path, topic: Path, pages: int, *, watched: bool) -> str:
    ticks = folder.with_suffix(".ticks")
    command = [sys.executable, "-c", _WATCH_TICKS, str(ticks), "crawl", str(topic)]
    command += ["--web", str(web), "--pages", str(pages), "--folder", str(folder)]
    command += ["--delay-s", "0", "--concurrency", "1", "-s", "FOCUSED_PARSER_PROCESSES=0"]
    console_cpu_s = watched_s = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as crawl:
        if watched:
            while not (folder / "settings.json").exists() and crawl.poll() is None:
                time.sleep(0.2)
            with running_console(folder) as console, _browser(console.address):
                began_s, began_cpu_s = time.monotonic(), console.cpu_s
                crawl.wait()
                console_cpu_s = console.cpu_s - began_cpu_s
                watched_s = time.monotonic() - began_s
    profile = json.loads((folder / "stats.json").read_text())["profile"]
    ticks_s, times = ticks.read_text().split()
    return (
        f"{folder.name}: crawl {profile['cpu_s']:.2f} CPU s in {profile['elapsed_s']:.0f} s, "
        f"ticks {float(ticks_s):.3f} CPU s ({times}); watched for {watched_s:.0f} s, "
        f"console {console_cpu_s:.2f} CPU s"
    )


@contextmanager
def _browser(address: str) -> Iterator[None]:
    """Show the console in a Chromium without a window."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.support.label_pages import chromium

    with chromium() as window:
        window.get(address)
        yield


# Scale


def measure_views(work: Path) -> None:
    """Time each view of the console on a large crawl."""
    folder = work / "large"
    if not (folder / "settings.json").exists():
        write_large_crawl(folder)
    print("| view | first: ms, CPU ms | further: ms, CPU ms | kB |\n|---|---|---|---|")
    crawl = "/api/crawls/0"
    a_page = quote(_url(1), safe="")
    views = {
        "list of crawls": "/api/crawls",
        "overview": f"{crawl}/events",
        "pages": f"{crawl}/pages",
        "pages with a word": f"{crawl}/pages?text=p77&sort=relevance",
        "a page with its link graph": f"{crawl}/page?url={a_page}",
        "hosts": f"{crawl}/hosts",
        "frontier": f"{crawl}/frontier",
        "models": f"{crawl}/models",
    }
    with running_console(folder) as console:
        before_mb = console.memory_mb
        for name, path in views.items():
            taken = [_time(console, path) for _ in range(1 + _REQUESTS)]
            wall, cpu, sizes = zip(*taken, strict=True)
            print(
                f"| {name} | {wall[0]:.0f}, {cpu[0]:.0f} | {statistics.median(wall[1:]):.0f}, "
                f"{statistics.mean(cpu[1:]):.0f} | {sizes[0] / 1000:.0f} |",
                flush=True,
            )
        print(f"memory: {before_mb:.0f} MB at the start, {console.memory_mb:.0f} MB at the end")


def _time(console: Console, path: str) -> tuple[float, float, int]:
    """Return milliseconds by the clock and of the CPU, and bytes."""
    began_s, began_cpu_s = time.perf_counter(), console.cpu_s
    body = console.ask(path)
    took_s = time.perf_counter() - began_s
    return 1e3 * took_s, 1e3 * (console.cpu_s - began_cpu_s), len(body)


def write_large_crawl(folder: Path) -> None:
    """Write the state of a crawl."""
    rng = random.Random(0)
    store = StateStore.open(folder / "state", {"benchmark": "console"}, commit_every=1_000)
    save_link_order(store.tables, LinkOrder())
    archive = Archive(store)
    for seq in range(_PAGES):
        relevance = rng.random()
        row = PageRow(
            seq,
            _url(seq),
            _host(seq),
            "fetched",
            rng.random(),
            {},
            seq % 12,
            _url(seq // 12) if seq else None,
            f"anchor {seq}",
            float(seq),
            float(seq),
            "focused",
            status=200,
            title=f"The title of page number {seq}",
            relevance=relevance,
            on_topic=relevance > 0.7,
            language="en",
            bytes=20_000,
        )
        # Links lead to early pages more often, as in real webs.
        targets = (int(_PAGES * rng.random() ** 3) for _ in range(_LINKS_A_PAGE))
        links = [
            LinkRow(_url(target), f"anchor {target}", 0.5, nofollow=False, score=0.5)
            for target in targets
        ]
        archive.append(row, links)
        store.commit()
    frontier = DiskFrontier(store.tables)
    for start in range(0, _QUEUED, 1_000):
        frontier.push_all((_link(number, rng) for number in range(start, start + 1_000)), 0.0)
        store.commit()
    store.close()
    settings = {"topic": {"name": "large"}, "policy": "focused"}
    write_json_atomically(folder / "settings.json", settings)


def _link(number: int, rng: random.Random) -> QueuedLink:
    host = f"h{number % _HOSTS}.test"
    url = f"http://{host}/queued/{number}"
    score = rng.random()
    return QueuedLink(link_key(url), url, host, score, score, 3, _url(number % _PAGES), "an anchor")


def _host(seq: int) -> str:
    return f"h{seq % _HOSTS}.test"


def _url(seq: int) -> str:
    return f"http://{_host(seq)}/p{seq}"


if __name__ == "__main__":
    main(sys.argv[1:])
