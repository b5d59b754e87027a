"""What the documentation must not lack: commands, settings, columns, files behind links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import focused
from focused.archive_schema import LINKS_SCHEMA, PAGES_SCHEMA
from focused.cli import main
from focused.crawl.failures import RULES
from focused.frontier.transfer import SCHEMA
from focused.recorded.faults import FaultKind
from focused.scrapy_addon.checked_settings import DEFAULTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def commands(group: click.Group, path: str = "focused") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def section(text: str, heading: str) -> str:
    """The text under the heading that begins with ``heading``; empty when there is none."""
    found = re.search(rf"^## {re.escape(heading)}\b.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def table_names(text: str) -> set[str]:
    """The names in code style in the first cells of a text's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^` ]+)[^`]*`", cell)}


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


COMMANDS = dict(commands(main))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_each_of_its_options_is_documented(name: str) -> None:
    told = section((REFERENCE / "commands.md").read_text(), name)
    assert told, f"docs/reference/commands.md has no section '## {name}'"
    options = [p for p in COMMANDS[name].params if isinstance(p, click.Option)]
    missing = {option for p in options for option in p.opts} - table_names(told)
    assert not missing


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_is_documented_with_an_option_it_lacks(name: str) -> None:
    told = section((REFERENCE / "commands.md").read_text(), name)
    known = {option for p in COMMANDS[name].params for option in p.opts}
    assert {word for word in table_names(told) if word.startswith("--")} <= known


def test_no_command_is_documented_that_does_not_exist() -> None:
    told = re.findall(r"^## (focused(?: [a-z]+)+)", (REFERENCE / "commands.md").read_text(), re.M)
    assert set(told) == set(COMMANDS)


def test_the_documented_settings_are_those_of_the_add_on() -> None:
    told = section((REFERENCE / "settings.md").read_text(), "Settings of the add-on")
    assert table_names(told) == set(DEFAULTS)


def test_the_documented_defaults_are_those_of_the_add_on() -> None:
    told = section((REFERENCE / "settings.md").read_text(), "Settings of the add-on")
    rows = dict(re.findall(r"^\| `(FOCUSED_\w+)` \| `([^`]+)` \|", told, re.MULTILINE))
    shown = {name: str(value) for name, value in DEFAULTS.items()}
    assert {name: value.strip('"') for name, value in rows.items()} == shown


@pytest.mark.parametrize(
    ("file", "columns"), [("pages.parquet", PAGES_SCHEMA), ("links.parquet", LINKS_SCHEMA)]
)
def test_the_documented_columns_are_those_of_the_schema(file: str, columns: object) -> None:
    told = section((REFERENCE / "crawl-folder.md").read_text(), file)
    assert table_names(told) == set(columns.names)


def test_the_documented_kinds_of_failure_are_those_that_a_crawl_acts_by() -> None:
    told = section((REFERENCE / "crawl-folder.md").read_text(), "Kinds of failure")
    told = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", told)
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.+?) \| (yes|no) \| (.+?) \|$", told, re.MULTILINE)
    assert rows == [
        (str(kind), rule.meaning, "yes" if rule.again else "no", str(rule.host))
        for kind, rule in RULES.items()
    ]


def test_every_kind_of_fault_is_documented() -> None:
    told = section((DOCS / "how-to" / "recorded-webs.md").read_text(), "Faults")
    kinds = {str(kind) for kind in FaultKind if kind is not FaultKind.STATUS}
    assert kinds <= table_names(told)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            dead.append(link)
    assert not dead


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(page.read_text()))
        targets = [(page.parent / link).resolve() for link in links if ":" not in link and link]
        for target in targets:
            waiting += target.glob("*.md") if target.is_dir() else []
            waiting += [target] if target.suffix == ".md" and target.is_file() else []
    assert set(DOCS.rglob("*.md")) <= reached


@pytest.mark.parametrize(
    "package",
    sorted({file.parent for file in Path(focused.__file__).parent.rglob("*.py")}),
    ids=lambda folder: folder.name,
)
def test_every_package_tells_in_its_docstring_what_it_is(package: Path) -> None:
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text()))


def test_every_decision_tells_context_decision_and_consequences_in_few_lines() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [int(file.name[:4]) for file in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for file in decisions:
        text = file.read_text()
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", file.name)
        assert text.startswith(f"# {file.name[:4]} ")
        assert all(f"**{part}" in text for part in ("Context", "Decision", "Consequences"))
        assert len(text.splitlines()) < 25


def test_the_documented_columns_of_an_exported_frontier_are_those_of_its_schema() -> None:
    told = section((DOCS / "how-to" / "frontier.md").read_text(), "Carrying links")
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", told, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == SCHEMA.names
