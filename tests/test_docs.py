"""What the documentation must not lack: commands, settings, columns, files behind links."""

import ast
import re
from pathlib import Path

import click
import pytest

import focused
import focused_lab
from docs.images import architecture
from docs.site_hooks import _GENERATORS, _MARKER, commands, with_generated
from focused.archive.parquet import LINKS_SCHEMA, PAGES_SCHEMA, VISITS_SCHEMA
from focused.frontier.import_export import FRONTIER_SCHEMA
from focused.revisit.policies import revisit_policy_names
from focused_lab.freshness.revisit_comparison import BOUNDS
from focused_lab.recorded_web.replay_faults import FaultKind

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """The text under the heading that begins with ``heading``; empty when there is none."""
    found = re.search(rf"^## {re.escape(heading)}\b.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def table_names(text: str) -> set[str]:
    """The names in code style in the first cells of a text's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^` ]+)[^`]*`", cell)}


def listed_names(text: str) -> set[str]:
    """The names in code style at the beginning of a text's list items, before a type."""
    heads = re.findall(r"^- (`.*?)(?: \(|: )", text, re.MULTILINE)
    return {name for head in heads for name in re.findall(r"`([^`]+)`", head)}


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def generated(page: Path) -> str:
    """A page as the site shows it, with its generated parts."""
    return with_generated(page.read_text(encoding="utf-8"), page)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_those_of_the_code(page):
    text = page.read_text(encoding="utf-8")
    assert text == with_generated(text, page), "run make reference"


def test_each_generated_table_has_a_place():
    markers = [match[2] for page in pages() for match in _MARKER.finditer(page.read_text())]
    assert set(markers) == set(_GENERATORS)


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_each_of_its_options_has_a_help_text(name):
    command = COMMANDS[name]
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert command.help
    assert not [option.name for option in options if not option.help]


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("pages.parquet", [*PAGES_SCHEMA.names, "spam", "rendered"]),
        ("links.parquet", LINKS_SCHEMA.names),
        ("visits.parquet", VISITS_SCHEMA.names),
    ],
)
def test_the_documented_columns_are_those_of_the_schema(file, columns):
    documented = section((REFERENCE / "crawl-folder.md").read_text(), file)
    assert listed_names(documented) == set(columns)


def test_every_kind_of_fault_is_documented():
    documented = section((DOCS / "how-to" / "recorded-webs.md").read_text(), "Faults")
    kinds = {str(kind) for kind in FaultKind if kind is not FaultKind.STATUS}
    assert kinds <= table_names(documented)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings_that_exist(page):
    dead = []
    for link in LINK.findall(CODE.sub("", generated(page))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(generated(target))):
            dead.append(link)
    assert not dead


def test_every_page_of_the_docs_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(generated(page)))
        targets = [(page.parent / link).resolve() for link in links if ":" not in link and link]
        for target in targets:
            waiting += target.glob("*.md") if target.is_dir() else []
            waiting += [target] if target.suffix == ".md" and target.is_file() else []
    assert set(DOCS.rglob("*.md")) <= reached


@pytest.mark.parametrize(
    "package",
    sorted(
        file.parent
        for package in (focused, focused_lab)
        for file in Path(package.__path__[0]).rglob("__init__.py")
    ),
    ids=lambda folder: folder.name,
)
def test_every_package_tells_in_its_docstring_what_it_is(package):
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text()))


def test_every_decision_tells_context_decision_and_consequences_in_few_lines():
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [int(file.name[:4]) for file in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for file in decisions:
        text = file.read_text()
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", file.name)
        assert text.startswith(f"# {file.name[:4]} ")
        assert all(f"**{part}" in text for part in ("Context", "Decision", "Consequences"))
        assert len(text.splitlines()) < 25


def test_the_documented_columns_of_an_exported_frontier_are_those_of_its_schema():
    documented = section((DOCS / "how-to" / "frontier.md").read_text(), "Carrying links")
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", documented, re.MULTILINE)
    assert [
        name for cell in cells for name in re.findall(r"`(\w+)`", cell)
    ] == FRONTIER_SCHEMA.names


def test_every_path_that_contributing_names_exists():
    named = re.findall(r"`([a-z]+/[\w./-]+)`", (DOCS / "contributing.md").read_text())
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_every_term_of_the_glossary_has_a_meaning_and_stands_in_order():
    text = (DOCS / "glossary.md").read_text()
    terms = re.findall(r"^- (?:\*\*(.+?)\*\*: \S)?", text.lower(), re.MULTILINE)
    assert all(terms)
    assert terms == sorted(terms)


def test_every_target_of_the_makefile_is_documented():
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    documented = section(generated(REFERENCE / "commands.md"), "make")
    assert set(re.findall(r"^\| `make ([a-z-]+)` \|", documented, re.MULTILINE)) == set(
        phony.split()
    )


def test_the_changelog_has_one_short_line_for_each_change():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert len(entries) == len(set(entries))
    assert not [entry for entry in entries if len(entry) > 200]


def test_every_revisit_policy_has_a_row():
    text = (REFERENCE / "revisit-policies.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]*) \|", section(text, "Policies"), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert named == {*revisit_policy_names(), *BOUNDS}


def test_the_picture_of_the_architecture_is_that_of_the_code():
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.draw()
    drawn = {name for layer in architecture.layers() for name in layer}
    packages = {f"focused.{path.stem}" for path in (ROOT / "focused").glob("[a-z]*")}
    assert {name for name in drawn if name.startswith("focused.")} == packages
