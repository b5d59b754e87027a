"""Pages of the documentation web with the text that they were made from.

Sphinx ships the reStructuredText source of each page in ``_sources/``. docutils parses it; what it
renders as text is the page's main text. Directives and roles that only Sphinx knows are read as
generic ones: their arguments and their content are text. Pages with a directive that takes text
from elsewhere (``automodule``, ``include``, ``toctree``) are left out.
"""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

from focused.text import hash_fraction
from focused_lab.builders.docweb_rules import DocPackage, load_doc_packages
from focused_lab.recorded_web.recorded_web import RecordedWeb

MIN_WORDS = 100
"""Shorter pages are left out: they are lists of links."""

_SOURCE = re.compile(r"(.*/)?_sources/(.+?)(?:\.rst)?\.(?:rst|txt)(?:\.gz)?")
_FOREIGN = re.compile(
    r"^\s*\.\. (?:auto\w*|include|literalinclude|toctree|cmake-module|plot|only|ifconfig|glossary"
    r"|bibliography|ipython|program-output|command-output|jinja|click|argparse|todolist|csv-table"
    r"|minigallery|currentmodule|module|py:module|config:option|show-options|raw|tabs?|panels?"
    r"|[\w:.-]*(?:options|summary|gallery|inventory|docs?|table|usage|schema))::",
    re.MULTILINE,
)
# fmt: off
_UNSHOWN = frozenset({
    "index", "meta", "highlight", "contents", "sectionauthor", "codeauthor", "moduleauthor",
    "tabularcolumns", "image", "figure", "default-domain", "default-role", "rst-class", "graphviz",
    "digraph", "graph", "testsetup", "testcleanup", "program", "sectnum", "todo", "ifnotslides",
    "class", "container", "header", "footer", "title", "role",
})
# fmt: on
_UNSHOWN_NODES = (
    nodes.system_message,
    nodes.comment,
    nodes.substitution_definition,
    nodes.image,
    nodes.problematic,
)
_TITLED = re.compile(r"(.*?)\s*<[^<>]+>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page and its source; ``headings`` and ``code`` are those of the source, in order."""

    url: str
    package: str
    html: str
    text: str
    headings: tuple[str, ...]
    code: tuple[str, ...]


def source_pages(web: RecordedWeb, debs: Path, per_package: int, seed: int) -> list[SourcePage]:
    """Return a seeded sample of at most ``per_package`` pages of each package in ``debs``."""
    found = []
    by_name = {path.name.partition("_")[0]: path for path in sorted(debs.glob("*.deb"))}
    for package in load_doc_packages("full"):
        deb = by_name.get(package.package)
        if deb is not None:
            found += _pages_of(web, package, deb, per_package, seed)
    return found


def _pages_of(
    web: RecordedWeb, package: DocPackage, deb: Path, most: int, seed: int
) -> list[SourcePage]:
    sources = {}
    for path, raw in _source_files(deb, package):
        url = web.find(f"{package.base}{quote(path)}.html")
        if url is None and path.rpartition("/")[2] == "index":
            url = web.find(package.base + quote(path.removesuffix("index")))
        if url is not None:
            sources[url] = raw
    pages: list[SourcePage] = []
    for url in sorted(sources, key=lambda url: hash_fraction(url, seed)):
        if len(pages) == most:
            break
        source = sources[url].decode("utf-8", "replace")
        response = web.get(url)
        if response is None or _FOREIGN.search(source):
            continue
        parsed = _parse(source)
        if parsed is not None and len(parsed[0].split()) >= MIN_WORDS:
            html = response.body.decode("utf-8", "replace")
            pages.append(SourcePage(url, package.package, html, *parsed))
    return pages


def _source_files(deb: Path, package: DocPackage) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each page below the package's root, without suffix, and its source."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True)
    root = f".{package.root.rstrip('/')}/"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            named = _SOURCE.fullmatch(member.name)
            if named is None or not member.isfile() or not member.name.startswith(root):
                continue
            file = archive.extractfile(member)
            assert file is not None
            raw = file.read()
            folder = (named[1] or "").removeprefix(root)
            yield folder + named[2], gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def _parse(source: str) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """Return text, headings and code blocks of a source; None if docutils cannot read it."""
    quiet = {
        "report_level": 5,
        "halt_level": 5,
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "doctitle_xform": False,
        "docinfo_xform": False,
        "smart_quotes": False,
        "_disable_config": True,
    }
    try:
        tree = publish_doctree(source, settings_overrides=quiet)
    except Exception:  # docutils raises many kinds over a broken source
        return None
    for kind in _UNSHOWN_NODES:
        for node in list(tree.findall(kind)):
            node.parent.remove(node)
    blocks = [
        node.astext()
        for node in tree.findall(nodes.TextElement)
        if not isinstance(node.parent, nodes.TextElement)
    ]
    headings = tuple(title.astext() for title in tree.findall(nodes.title))
    code = tuple(block.astext() for block in tree.findall(nodes.literal_block))
    return "\n".join(blocks), headings, code


class _GenericDirective(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive of Sphinx: its arguments are text, its content is parsed or literal."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> Sequence[Any]:
        if self.name.rpartition(":")[2] in _UNSHOWN:
            return []
        text = "\n".join(self.content)
        if "code" in self.name or self.name in ("sourcecode", "doctest", "testcode", "testoutput"):
            return [nodes.literal_block(text, text)]
        parts: list[Any] = []
        if self.arguments and not re.fullmatch(r"[\w-]+", self.arguments[0]):
            parts.append(nodes.paragraph("", self.arguments[0]))
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body, match_titles=1)
        return [*parts, *body.children]


def _generic_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[Any], list[Any]]:
    """Show what Sphinx shows: the title of a reference, its last part after ``~``."""
    titled = _TITLED.fullmatch(text)
    if titled:
        return [nodes.Text(titled[1])], []
    if name.rpartition(":")[2] in ("ref", "doc", "numref", "eq", "cite", "term"):
        return [nodes.Text("" if name != "term" else text)], []
    shown = text.rpartition(".")[2] if text.startswith("~") else text.lstrip("!")
    return [nodes.Text(shown)], []


def read_sphinx_markup() -> None:
    """Let docutils read all directives and roles that it does not know itself."""
    known_directive, known_role = directives.directive, roles.role
    replaced = _UNSHOWN | {"code", "code-block", "sourcecode"}

    def directive(name: str, *arguments: Any) -> Any:
        if name not in replaced:
            found = known_directive(name, *arguments)
            if found[0] is not None:
                return found
        return _AnyOptions, []

    def role(name: str, *arguments: Any) -> Any:
        found = known_role(name, *arguments)
        return found if found[0] is not None else (_generic_role, [])

    directives.directive = directive
    roles.role = role


class _AnyOption(dict[str, Any]):
    """An option table that knows all options."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return directives.unchanged

    def __contains__(self, name: object) -> bool:
        return True


class _AnyOptions(_GenericDirective):
    option_spec = _AnyOption()  # docutils reads the class's attribute
