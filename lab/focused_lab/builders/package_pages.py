"""Find the pages among a package's HTML files.

A page is an ``.html``, ``.htm``, ``.xhtml`` or ``.html.gz`` file. Excluded are:

- search pages and generated indexes (``genindex``, Doxygen's lists of classes, files and members);
- source listings, static files, redirect stubs without text;
- translations: folders and files with a language code, and pages whose ``html`` element declares
  another language than English.

Generated reference pages, one for each symbol (``generated/``, ``reference/api/``, Doxygen's
``classFoo.html``), are *API pages*, which a tier may leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from focused_lab.recorded_web.web_import import PAGE_NAME, is_page_name, page_path, read_html

MAX_PAGE_BYTES = 4_000_000

_EXCLUDED_FOLDERS = frozenset(
    {
        "_modules",
        "_sources",
        "_static",
        "_images",
        "_downloads",
        "_viewcode",
        "source",
        "src-html",
        "search",
    }
)
_LANGUAGE_NAMES = """
    ar bg bn bs ca cs da de el eo es et eu fa fi fr gl he hi hr hu id is it ja ka ko lt lv mk ml nb
    nl nn no pl pt ro ru sk sl sq sr sv ta te th tr uk ur vi zh zh-hans zh-hant
    zh-cn zh-tw zh_cn zh_tw pt-br pt_br es-es fr-fr de-de ja-jp
"""
_LANGUAGES = frozenset(_LANGUAGE_NAMES.split())
_EXCLUDED_NAMES = re.compile(
    r"""(?: search | searchresults | genindex(?:-.*)? | (?:py-)?modindex | np-modindex | cmd-index
        | bookindex | doc-?index(?:-.*)? | theindex | idx | indexpage | 404 | opensearch
        | annotated | annotated_dup | classes | files | hierarchy | inherits | namespaces | modules
        | dir_[0-9a-f]{32} | graph_legend | doxygen_crawl
        | (?:functions|globals|namespacemembers)(?:_.*)?
        | .*_source | .*-members | .*\.(?:c|cc|cpp|cxx|h|hpp|py|pl|rb|java)
        )""",
    re.VERBOSE | re.IGNORECASE,
)
_TRANSLATED_NAME = re.compile(r"\.([a-z]{2}(?:[-_][a-z]{2,4})?)$", re.IGNORECASE)
_API_FOLDERS = frozenset(
    {
        "generated",
        "_generated",
        "autosummary",
        "_autosummary",
        "apidocs",
        "apidoc",
        "api-docs",
        "_autogen",
    }
)
_API_PATHS = re.compile(
    r"""(?:^|/)(?: (?:reference/api|api/generated|api/api)/
                 | appdev/refs/(?:api|types|macros)/
                 | (?:api|reference|apiref|api_reference)/(?:.*/)?[a-z_0-9]+\.[a-z_0-9.]+\.html
                 | a[0-9]{5}\.html )""",
    re.IGNORECASE | re.VERBOSE,
)
_API_NAMES = re.compile(
    r"(?:class|struct|union|interface|namespace|group__|concept)[A-Z_0-9].*|.*_8(?:h|hh|hpp|c|cc|cpp)",
)
_HTML_LANGUAGE = re.compile(rb"<html\b[^>]*?\blang\s*=\s*[\"']?([A-Za-z]{2})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlPageFile:
    """A page's file, and its URL path below the root."""

    file: Path
    path: str
    is_api: bool


def find_page_files(root: Path) -> Iterator[HtmlPageFile]:
    """Yield the pages below ``root``, sorted by path; ``index.html`` becomes ``""``."""
    for file in sorted(root.rglob("*")):
        relative = PurePosixPath(file.relative_to(root).as_posix())
        if not is_page_name(relative.name) or _is_excluded(relative):
            continue
        if not file.is_file() or not file.resolve().is_relative_to(root.resolve()):
            continue
        yield HtmlPageFile(file, page_path(relative), _is_api(relative))


def _stem(relative: PurePosixPath) -> str:
    return PAGE_NAME.sub("", relative.name)


def _is_excluded(relative: PurePosixPath) -> bool:
    folders = {part.lower() for part in relative.parts[:-1]}
    if folders & _EXCLUDED_FOLDERS or folders & _LANGUAGES:
        return True
    stem = _stem(relative)
    translated = _TRANSLATED_NAME.search(stem)
    if translated and translated[1].lower().replace("_", "-")[:2] in _LANGUAGES:
        return True
    return _EXCLUDED_NAMES.fullmatch(stem) is not None


def _is_api(relative: PurePosixPath) -> bool:
    folders = {part.lower() for part in relative.parts[:-1]}
    if folders & _API_FOLDERS or _API_PATHS.search(str(relative)):
        return True
    return _API_NAMES.fullmatch(_stem(relative)) is not None


def read_page(file: Path) -> bytes | None:
    """Return a page's bytes; None if it is empty, too large, unreadable or not in English."""
    try:
        body = read_html(file)
    except OSError:
        return None
    language = _HTML_LANGUAGE.search(body, 0, 4096)
    if language and language[1].lower() != b"en":
        return None
    return body if body.strip() and len(body) <= MAX_PAGE_BYTES else None
