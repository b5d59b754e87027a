"""Runs the real command on a real topic file, in a process of its own, over a served web."""

import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

import pandas as pd

from tests.support.forked import HANGS_AFTER_S, ForkedCommand

ROOT = Path(__file__).parents[2]
USER_AGENT = "FocusedTest/0.1 (+http://example.org/bot)"
TOPIC = """
name = "whales"
[seeds]
urls = {seeds}
[training]
directory = ["directory.tsv"]
good = ["Top/Whales"]
embedding = false
[politeness]
user_agent = "{user_agent}"
delay_s = {delay_s}
timeout_s = {timeout_s}
{politeness}
[scope]
{scope}
[budget]
{budget}
[revisit]
{revisit}
[output]
folder = "out"
{output}
"""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a crawl left: its exit status, its output, its folder."""

    status: int
    output: str
    folder: Path

    @property
    def stats(self) -> dict[str, Any]:
        """The crawl folder's ``stats.json``."""
        stats: dict[str, Any] = json.loads((self.folder / "stats.json").read_text())
        return stats

    @property
    def pages(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "pages.parquet").set_index("url", drop=False)

    def fetched(self) -> list[str]:
        pages = self.pages
        return list(pages[pages["outcome"] == "fetched"]["url"])


def write_topic(
    folder: Path,
    *seeds: str,
    delay_s: float = 0.0,
    timeout_s: float = 60.0,
    politeness: str = "",
    scope: str = "",
    budget: str = "",
    revisit: str = "",
    output: str = "",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "directory.tsv").write_text("Top/Whales\thttp://a.test/trained\tWhales\tWhales\n")
    path = folder / "whales.toml"
    path.write_text(
        TOPIC.format(
            seeds=list(seeds),
            user_agent=USER_AGENT,
            delay_s=delay_s,
            timeout_s=timeout_s,
            politeness=politeness,
            scope=scope,
            budget=budget,
            revisit=revisit,
            output=output,
        )
    )
    return path


def command(topic: Path, address: str, **settings: Any) -> list[str]:
    given = {
        "FOCUSED_REPLAY": address,
        "FOCUSED_MODELS": "tests.support.whale_models.fixed_models",
        "FOCUSED_REPORT": False,  # a third of what the end of a crawl costs
        **settings,
    }
    options = [text for name, value in given.items() for text in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", "topic", "-a", f"topic={topic}", *options]


def start(
    topic: Path,
    address: str,
    *,
    largest_file_bytes: int | None = None,
    most_files_open: int | None = None,
    arguments: Sequence[str] = (),
    **settings: Any,
) -> ForkedCommand:
    """Start ``scrapy crawl topic``."""
    limits = {resource.RLIMIT_FSIZE: largest_file_bytes, resource.RLIMIT_NOFILE: most_files_open}
    return ForkedCommand([*command(topic, address, **settings)[2:], *arguments], limits=limits)


def finish(
    process: ForkedCommand | Popen[str], topic: Path, timeout_s: float = HANGS_AFTER_S
) -> Finished:
    """Wait for the end of a crawl; kill one that hangs."""
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except TimeoutExpired:
        process.kill()
        process.wait()
        raise
    return Finished(process.returncode, output, topic.parent / "out")


def crawl(
    topic: Path, address: str, *, timeout_s: float = HANGS_AFTER_S, **options: Any
) -> Finished:
    """Run ``scrapy crawl topic`` to its end; ``options`` as for :func:`start`."""
    return finish(start(topic, address, **options), topic, timeout_s)
