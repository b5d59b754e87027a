"""A Scrapy project of a user's own with the add-on, and its commands, each in a process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.crawling import finish, write_topic
from tests.support.forked import ForkedCommand
from tests.support.recorded_web import MemoryWeb, served

_SETTINGS = {
    "BOT_NAME": "mine",
    "SPIDER_MODULES": ["mine.spiders"],
    "ADDONS": {"focused.scrapy_addon.FocusedAddon": 0},
    "COMMANDS_MODULE": "focused.scrapy_addon.commands",
    "FOCUSED_TOPIC": "whales.toml",
    "FOCUSED_MODELS": "tests.support.whale_models.fixed_models",
    "FOCUSED_PROGRESS_INTERVAL_S": 0,
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind: its exit status, all that it printed, and its project."""

    status: int
    output: str
    project: Path

    @property
    def items(self) -> list[dict[str, Any]]:
        file = self.project / "items.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def stats(self) -> dict[str, Any]:
        """The crawl folder's ``stats.json``."""
        stats: dict[str, Any] = json.loads((self.project / "out" / "stats.json").read_text())
        return stats


def write_project(
    folder: Path, spider: str, *seeds: str, settings: Mapping[str, Any] | None = None, **topic: Any
) -> Path:
    """Write a project with one spider module; ``topic`` as for :func:`write_topic`."""
    write_topic(folder, *(seeds or ("http://unused.test/",)), **topic)
    spiders = folder / "mine" / "spiders"
    spiders.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = mine.settings\n")
    lines = [f"{name} = {value!r}" for name, value in {**_SETTINGS, **(settings or {})}.items()]
    (folder / "mine" / "settings.py").write_text("\n".join(lines))
    (spiders.parent / "__init__.py").touch()
    (spiders / "__init__.py").write_text(spider)
    return folder


def scrapy(project: Path, *arguments: str, timeout_s: float = 120.0) -> Ran:
    """Run a ``scrapy`` command in the project to its end."""
    process = ForkedCommand(["scrapy", *arguments], folder=project)
    done = finish(process, project / "topic", timeout_s)
    return Ran(done.status, done.output, project)


def crawl_own(project: Path, *arguments: str) -> Ran:
    """Run ``scrapy crawl mine``; its items go to a file of the project's."""
    items = project / "items.jsonl"
    return scrapy(project, "crawl", "mine", "-O", str(items.relative_to(project)), *arguments)


def crawl_web(project: Path, web: MemoryWeb, *arguments: str) -> Ran:
    """Run ``scrapy crawl mine`` over a web; all must go well."""
    with served(web) as site:
        done = crawl_own(project, "-s", f"FOCUSED_REPLAY={site.address}", *arguments)
    assert done.status == 0, done.output
    return done
