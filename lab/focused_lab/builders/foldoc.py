"""Build FOLDOC, the Free On-line Dictionary of Computing, as a web of small pages.

From Debian's ``dict-foldoc``: one page for each entry under ``http://foldoc.org/Entry+Name``,
cross references ``{like this}`` as links, a home page and contents pages
by first letter. The subject tags of an entry (``<networking, standard>``) are removed from the page
and become its labels, ``Top/Computers/Networking`` and ``Top/Computers/Standard``.

FOLDOC is copyright by Denis Howe, GNU Free Documentation License; its notice is one of the entries.
"""

from __future__ import annotations

import gzip
import html
import re
import string
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

from focused.errors import RecordedWebError
from focused_lab.builders.built_web import (
    BuiltWeb,
    ReferenceSite,
    SitePage,
    build_site,
    letter_of,
    link,
)
from focused_lab.builders.debian_packages import ProgressLine, fetch_packages, unpacked
from focused_lab.recorded_web.web_import import modified_at

BUILDER = "focused foldoc 1"
HOME = "http://foldoc.org/"
_PACKAGE = "dict-foldoc"
_NEARBY = 3
_SYNONYMS = "%%%"
_TAG = re.compile(
    r"""\A(\s*(?:/[^/]+/\s+)?(?:\([^()]{1,40}\)\s+)?(?:\d+\.\s+)?)
        <([a-z][a-z0-9\ \n/-]*(?:,[a-z0-9\ \n/-]+)*)>\s*""",
    re.VERBOSE,
)
_REFERENCE = re.compile(r"\{([^{}]+)\}")
_ADDRESS = re.compile(
    r"\A(.*?)(?<!\s)\s*+\((https?://[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)\Z", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class FoldocEntry:
    """One entry: title, all its names, subjects and paragraphs."""

    title: str
    names: tuple[str, ...]
    subjects: tuple[str, ...]
    paragraphs: tuple[str, ...]

    @property
    def url(self) -> str:
        """URL of the entry's page."""
        return HOME + quote_plus(self.title)


def build_foldoc(folder: Path, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the web of FOLDOC at ``folder``, unless it is up to date.

    The package is downloaded to ``cache`` and kept. Raises RecordedWebError without apt or network,
    or if the folder contains something else.
    """

    def make() -> ReferenceSite:
        deb = fetch_packages([_PACKAGE], cache / "debs", progress)[_PACKAGE]
        with unpacked(deb, cache / "unpacked" / _PACKAGE) as files:
            data = files / "usr/share/dictd/foldoc.dict.dz"
            entries = parse_entries(read_dictionary(data.with_name("foldoc.index"), data))
            written_at = modified_at(data)
        labels = [(entry.url, category) for entry in entries for category in categories(entry)]
        return ReferenceSite(foldoc_pages(entries), labels, written_at, 1, deb.stat().st_size)

    return build_site(folder, "foldoc", BUILDER, progress, make)


def parse_entries(raw: Sequence[DictEntry]) -> list[FoldocEntry]:
    """Return the entries sorted by title; of several with one title, the first."""
    entries: dict[str, FoldocEntry] = {}
    for entry in map(parse_entry, raw):
        if entry is not None:
            entries.setdefault(entry.url, entry)
    return sorted(entries.values(), key=lambda entry: (entry.title.casefold(), entry.title))


def parse_entry(raw: DictEntry) -> FoldocEntry | None:
    """Parse one printed entry; None without a title.

    The lines before the first empty line are its names. A subject tag is at the beginning of a
    paragraph, at most after pronunciation, abbreviation and sense number.
    """
    heading, _, body = raw.text.strip("\n").partition("\n\n")
    names = [name.strip() for line in heading.split("\n") for name in line.split(_SYNONYMS)]
    names = [name for name in names if name]
    if not names:
        return None
    subjects: list[str] = []
    paragraphs: list[str] = []
    for paragraph in re.split(r"\n\s*\n", body):
        tag = _TAG.match(paragraph)
        if tag:
            subjects += [" ".join(subject.split()) for subject in tag[2].split(",")]
            paragraph = tag[1] + paragraph[tag.end() :]
        if paragraph.strip():
            paragraphs.append(" ".join(paragraph.split()))
    all_names = dict.fromkeys([*names, *raw.headwords])
    unique_subjects = dict.fromkeys(subject for subject in subjects if subject)
    return FoldocEntry(names[0], tuple(all_names), tuple(unique_subjects), tuple(paragraphs))


def categories(entry: FoldocEntry) -> list[str]:
    """Return an entry's labels: ``Top/Computers/Operating_System`` for ``operating system``."""
    return [
        "Top/Computers/" + "_".join(word.capitalize() for word in re.split(r"[ /]", subject))
        for subject in entry.subjects
    ]


def foldoc_pages(entries: Sequence[FoldocEntry]) -> Iterator[SitePage]:
    """Yield home, contents and entry pages."""
    targets = {_key(name): entry.url for entry in reversed(entries) for name in entry.names}
    targets |= {_key(entry.title): entry.url for entry in reversed(entries)}
    letters: dict[str, list[FoldocEntry]] = {}
    for entry in entries:
        letters.setdefault(letter_of(entry.title), []).append(entry)
    navigation = '<p class="nav"><a href="/">Home</a> ' + " ".join(
        f'<a href="/contents/{letter}.html">{letter}</a>' for letter in sorted(letters)
    )
    name = "Free On-line Dictionary of Computing"
    home = f"<h1>{name}</h1>\n<p>Contents by first letter.</p>\n{navigation}</p>"
    yield SitePage(HOME, name, home)
    for letter in sorted(letters):
        rows = "\n".join(f"<li>{_link(entry)}</li>" for entry in letters[letter])
        title = f"Contents: {letter}"
        url = f"{HOME}contents/{letter}.html"
        yield SitePage(url, title, f"<h1>{title}</h1>\n{navigation}</p>\n<ul>\n{rows}\n</ul>")
    for number, entry in enumerate(entries):
        text = "\n".join(f"<p>{_linked(part, targets)}</p>" for part in entry.paragraphs)
        around = entries[max(0, number - _NEARBY) : number + _NEARBY + 1]
        nearby = " ".join(_link(other) for other in around if other is not entry)
        yield SitePage(
            entry.url,
            f"{entry.title} from FOLDOC",
            f"<h1>{html.escape(entry.title)}</h1>\n{text}\n"
            f'<p class="nearby">Nearby terms: {nearby}</p>\n'
            f'<p class="nav"><a href="/">Home</a> '
            f'<a href="/contents/{letter_of(entry.title)}.html">Contents</a></p>',
        )


def _link(entry: FoldocEntry) -> str:
    return link(entry.url, entry.title)


def _linked(paragraph: str, targets: Mapping[str, str]) -> str:
    """Return the paragraph as HTML; references without a target become plain text."""
    parts: list[str] = []
    end = 0
    for match in _REFERENCE.finditer(paragraph):
        parts += [html.escape(paragraph[end : match.start()]), _reference(match[1], targets)]
        end = match.end()
    return "".join(parts) + html.escape(paragraph[end:])


def _reference(text: str, targets: Mapping[str, str]) -> str:
    outside = _ADDRESS.match(text)
    if outside:
        text, target = outside[1] or outside[2], outside[2]
    else:
        target = targets.get(_key(text), "")
    return link(target, text) if target else html.escape(text)


def _key(name: str) -> str:
    return " ".join(name.casefold().split())


_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


@dataclass(frozen=True, slots=True)
class DictEntry:
    """One printed entry; ``headwords`` are its words in the index."""

    headwords: tuple[str, ...]
    text: str


def decode_number(digits: str) -> int:
    """Decode a base-64 number (RFC 4648 digits, most significant first); raises ValueError."""
    if not digits or not set(digits) <= set(_DIGITS):
        raise ValueError(f"{digits!r} is no base-64 number")
    number = 0
    for digit in digits:
        number = number * 64 + _DIGITS.index(digit)
    return number


def read_dictionary(index: Path, data: Path) -> list[DictEntry]:
    """Read a dictd dictionary: all entries in file order, without those about the database.

    A line of the index is ``headword<TAB>offset<TAB>length``, with base-64 numbers; the data file
    is gzip. Raises RecordedWebError that names the damaged file and line.
    """
    try:
        text = gzip.decompress(data.read_bytes())
        lines = index.read_text(encoding="utf-8").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecordedWebError(f"{index} or {data.name} cannot be read: {error}") from error
    words: dict[tuple[int, int], list[str]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            word, offset, length = line.split("\t")
            place = (decode_number(offset), decode_number(length))
        except ValueError as error:
            raise RecordedWebError(f"{index}, line {number}: {error}") from error
        if sum(place) > len(text):
            raise RecordedWebError(f"{index}, line {number}: points behind the end of {data.name}")
        if not word.startswith(("00-database", "00database")):
            words.setdefault(place, []).append(word)
    return [
        DictEntry(tuple(words[place]), text[place[0] : sum(place)].decode("utf-8", "replace"))
        for place in sorted(words)
    ]
