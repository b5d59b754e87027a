"""Lists and tables of the reference; MkDocs hooks that mend links which leave the docs.

A page says where one goes: ``<!-- generated: settings -->``. ``make reference`` writes them into
the pages, which are read outside of the built site, too; a test holds them up to date.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pandas as pd

from focused.cli import main
from focused.crawl.hosts.failures import FAILURE_RULES
from focused.scrapy_addon.addon_settings import all_settings
from focused.scrapy_addon.driver_features import statistics_meanings
from focused.scrapy_addon.scrapy_settings import IGNORED
from focused.topic.topic_keys import TOPIC_KEYS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"

_MANY_SHARED = 2
"""So many options of an earlier command are named, not explained again."""

_END = "<!-- end of what is generated -->"
_MARKER = re.compile(
    rf"^(<!-- generated: ([a-z-]+)(?: ([a-z_]+))? -->)$(?:.*?^{_END}$)?", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?")
_DOCS_PATH = re.compile(r"docs/([a-z/-]+/([a-z-]+)\.md(?:#[a-z0-9-]+)?)")


def on_config(config: Any) -> Any:
    """List every decision record in the navigation."""
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    (contributing,) = (part for part in config.nav if "Contributing" in part)
    (listed,) = (part for part in contributing["Contributing"] if "Decisions" in part)
    listed["Decisions"] = [str(file.relative_to(DOCS)) for file in decisions]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Link files outside the docs folder to the repository."""
    return _with_links_out(markdown, (DOCS / page.file.src_uri).parent, config.repo_url)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """Show what docstrings refer to by a Sphinx role as code."""
    return _ROLE.sub("<code>", html)


def with_generated(markdown: str, source: Path) -> str:
    """Return a page's text with what its markers ask for behind them."""

    def generated(match: re.Match[str]) -> str:
        text = _GENERATORS[match[2]](match[3] or "")
        linked = _DOCS_PATH.sub(lambda path: _linked(path, source.parent), text)
        return f"{match[1]}\n\n{linked}\n\n{_END}"

    return _MARKER.sub(generated, markdown)


def _linked(path: re.Match[str], folder: Path) -> str:
    return f"[{path[2].replace('-', ' ')}]({os.path.relpath(DOCS / path[1], folder)})"


def _with_links_out(markdown: str, folder: Path, repository: str | None) -> str:
    def mended(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", path):
            return match[0]
        target = Path(os.path.normpath(folder / path))
        if target.suffix == ".md" and target.is_relative_to(DOCS):
            return match[0]
        name = target.relative_to(ROOT)
        if repository:
            return f"[{text}]({repository.rstrip('/')}/blob/main/{name}{anchor})"
        return text if text.strip("`") == name.name else f"{text} (`{name}`)"

    return _LINK.sub(mended, markdown)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in (head, *rows)
    ]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])


def _list(entries: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {meaning}" for name, meaning in entries)


def commands(
    group: click.Group = main, path: str = "focused"
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _commands(_: str) -> str:
    documented: dict[tuple[str, str], str] = {}
    return "\n\n".join(_command(path, command, documented) for path, command in commands())


def _command(path: str, command: click.Command, documented: dict[tuple[str, str], str]) -> str:
    """A command's section; ``documented`` has each option's first command, and gets its options."""
    context = click.Context(command, info_name=path)
    _, *arguments = command.collect_usage_pieces(context)
    usage = [f"`{' '.join((path, *arguments))}`"] if arguments else []
    parts = [f"## {path}", *usage, _paragraphs(command)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    helps = [help_ for option in options if (help_ := option.get_help_record(context))]
    found = [documented.setdefault(help_, path) for help_ in helps]
    shared = {other for other in found if other != path and found.count(other) >= _MANY_SHARED}
    entries = [
        (f"`{names.replace(' RANGE', '')}`", _without_obvious_range(text))
        for (names, text), other in zip(helps, found, strict=True)
        if other not in shared
    ]
    for each in sorted(shared):
        names = (names for (names, _), other in zip(helps, found, strict=True) if other == each)
        named = ", ".join(f"`{name.split()[0]}`" for name in names)
        entries.append((named, f"As of [{each}](#{each.replace(' ', '-')})."))
    return "\n\n".join([*parts, _list(entries)] if entries else parts)


def _without_obvious_range(text: str) -> str:
    """An option's help without the note that it is positive, or not negative."""
    return re.sub(r"  \[x>=?[01](?:\.0)?\]$|; x>=?[01](?:\.0)?(?=\]$)", "", text)


def _paragraphs(command: click.Command) -> str:
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _settings(_: str) -> str:
    return _list(
        (
            f"`{each.name}`" + (f" (`{each.default!r}`)" if each.default is not None else ""),
            each.meaning,
        )
        for each in all_settings().values()
    )


def _ignored_settings(_: str) -> str:
    rows = [(", ".join(f"`{name}`" for name in each.names), each.reason) for each in IGNORED]
    return _table(("setting", "remarks"), rows)


def _statistics(_: str) -> str:
    return _list((f"`focused/{name}`", meaning) for name, meaning in statistics_meanings().items())


def _make(_: str) -> str:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^# (make [a-z-]+) +(.+)$", makefile, re.MULTILINE)
    return _table(("target", "what it does"), [(f"`{name}`", text) for name, text in targets])


def _topic_keys(section: str) -> str:
    return _list(
        (
            f"`{key.name}` ({'; '.join(filter(None, (key.kind.name, _default(key.default))))})",
            key.meaning,
        )
        for key in TOPIC_KEYS["" if section == "head" else section]
    )


def _default(text: str) -> str:
    return f"`{text}`" if re.match(r'["\[{\d]|true$|false$', text) else text


def _packages(_: str) -> str:
    """Each package with the first sentence of its docstring, the highest layer first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers")
    rows = []
    for name in (name.strip() for layer in contract["layers"] for name in layer.split("|")):
        place = ROOT / name.replace(".", "/")
        inner = sorted(each.parent for each in place.glob("*/__init__.py"))
        for path in [place, *inner] if place.is_dir() else [place.with_suffix(".py")]:
            source = path / "__init__.py" if path.is_dir() else path
            docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
            words = re.sub(r":[a-z]+:`~?([^`]+)`|``([^`]+)``", r"`\1\2`", docstring)
            rows.append((f"`{path.relative_to(ROOT)}`", " ".join(words.split("\n\n")[0].split())))
    return _table(("package", "what it holds"), rows)


def _failures(_: str) -> str:
    rows = [
        (
            f"`{kind}`",
            rule.meaning,
            "; ".join(["retried"] * rule.again + [str(rule.host)] * (rule.host != "goes on")),
        )
        for kind, rule in FAILURE_RULES.items()
    ]
    return _table(("failure", "meaning", "link and host"), rows)


def _harvest(_: str) -> str:
    folder = RESULTS / "harvest"
    runs, summary = pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "summary.csv")
    if "reachable" in runs:
        runs = runs[runs.reachable != 0].copy()
    runs["start"] = runs.seeds.str.removesuffix(":5").str.replace("-", " ")
    capped = runs.host_cap.notna()
    runs["column"] = runs.web.where(runs.web != "docweb-medium", "docweb, " + runs.start)
    runs["column"] = runs.column.where(~capped, runs.column + ", host cap")
    means = runs.pivot_table(values="harvest", index="policy", columns="column", sort=False)
    rows = [
        (
            f"`{each.policy}`",
            f"{each.harvest:.1%}",
            f"{each.harvest_low:.1%}–{each.harvest_high:.1%}",
            f"{each.area:.3f}",
            *(f"{share:.1%}" for share in means.loc[each.policy]),
        )
        for each in summary.sort_values("harvest", ascending=False).itertuples()
    ]
    return _table(("ordering", "harvest rate", "95% interval", "area", *means.columns), rows)


def _classifier(_: str) -> str:
    """Quality of the classifier with 10 and 100 good samples, beside the baseline."""
    measures = {"average_precision": "average precision", "recall": "recall", "ece": "ECE"}
    classifiers = ("Focused", "MultinomialNB")
    table = pd.read_csv(RESULTS / "classifier" / "table.csv", dtype=str, keep_default_na=False)
    table = table[table.positives.isin(["10", "100"])]
    pairs = table.pivot(index=["web", "positives"], columns="classifier", values=list(measures))
    columns = [(measure, classifier) for measure in measures for classifier in classifiers]
    rows = [
        (
            *web_and_size,
            *(re.sub(r"\b0(?=\.)", "", row[column]).replace(" to ", "–") for column in columns),
        )
        for web_and_size, row in pairs.iterrows()
    ]
    names = (f"{measures[measure]}, {classifier}" for measure, classifier in columns)
    return _table(("web", "good samples", *names), rows)


_GENERATORS: dict[str, Callable[[str], str]] = {
    "commands": _commands,
    "settings": _settings,
    "ignored-settings": _ignored_settings,
    "statistics": _statistics,
    "make": _make,
    "topic-keys": _topic_keys,
    "failures": _failures,
    "packages": _packages,
    "harvest": _harvest,
    "classifier": _classifier,
}


def write_generated() -> None:
    """Write the generated parts into all pages."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(with_generated(text, page), encoding="utf-8")


if __name__ == "__main__":
    write_generated()
