"""Build the general background: samples of unrelated text in many languages.

``python training/background.py CACHE OUT`` makes ``focused/directory/data/background.jsonl.xz``
from Debian packages (fetched by apt into CACHE; no root needed) and Debian's translated
package descriptions. The same packages and lists give the same file.

A sample is a bag of about a hundred words in alphabetical order, which is all that a
bag-of-words classifier reads. The texts themselves are not distributed.
"""

from __future__ import annotations

import gettext
import gzip
import lzma
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from resiliparse.parse.lang import detect_fast

from focused.text import hash_fraction
from focused.text.tokens import tokenize
from focused_lab.builders.debian_packages import (
    PackageIndex,
    fetch_packages,
    last_line,
    paragraphs,
    parse_stanzas,
    run_tool,
    unpack,
)
from focused_lab.builders.debian_site import choose_packages
from focused_lab.builders.foldoc import read_dictionary

WORDS_A_SAMPLE = 100
LANGUAGES = (
    *("ca", "cs", "da", "de", "eo", "es", "eu", "fi", "fr", "hu", "it", "ja", "ko"),
    *("nl", "pl", "pt", "pt_BR", "ru", "sk", "sr", "sv", "tr", "uk", "vi", "zh_CN", "zh_TW"),
)
"""Those of bookworm's translated package descriptions; in English only packages are
described that are on no page of the recorded Debian web."""

PROSE = {
    "fortunes": "en",
    "fortunes-min": "en",
    "fortunes-bg": "bg",
    "fortunes-br": "pt",
    "fortunes-cs": "cs",
    "fortunes-de": "de",
    "fortunes-eo": "eo",
    "fortunes-es": "es",
    "fortunes-ga": "ga",
    "fortunes-it": "it",
    "fortunes-pl": "pl",
    "fortunes-ru": "ru",
    "fortunes-zh": "zh",
}
MANUALS = ("manpages", "manpages-dev")
OTHER_PACKAGES = ("dict-gcide", "dict-devil", "wordpress-l10n", *MANUALS)
MOST = {
    "dictionary": 900,
    "software": 700,
    "manuals": 300,
    "licences": 120,
    "prose": 80,
    "prose-en": 400,
    "interface": 24,
    "packages": 40,
}
"""The most samples of a source and language."""

_MAX_CHARS = 400
_DESCRIBED = 3_000
_DESCRIPTION = re.compile(r"Description-(?!md5)\w+")
_LOCALE = re.compile(r"([a-z]{2,3})(?:_[A-Z]{2})?")
_PLAIN = re.compile(r"<[^<>]*>|&[a-z]+;|%\S*|https?://\S+|\{[^{}]*\}")


class Sample(msgspec.Struct, frozen=True):
    """A line of the file: ISO 639-1 code (639-3 where it has none), source, sorted words."""

    language: str
    source: str
    text: str


def main(arguments: list[str]) -> None:
    """Write the file."""
    cache, out = Path(arguments[0]).absolute(), Path(arguments[1])
    debs = fetch_packages([*PROSE, *OTHER_PACKAGES], cache / "packages", print)
    folders = {}
    for name, deb in debs.items():
        folders[name] = cache / "unpacked" / name
        if not folders[name].is_dir():
            unpack(deb, folders[name])
    samples = [
        *drawn("dictionary", "en", dictionary(folders["dict-gcide"], "gcide")),
        *drawn("dictionary", "en", dictionary(folders["dict-devil"], "devil")),
        *(one for name, code in PROSE.items() for one in drawn_prose(folders[name], code)),
        *drawn("licences", "en", licences()),
        *drawn("manuals", "en", (t for name in MANUALS for t in manuals(folders[name]))),
        *drawn("software", "en", software(cache / "index")),
        *interfaces(folders["wordpress-l10n"]),
        *descriptions(cache / "lists"),
    ]
    # By lot, so that the first n are a draw of n.
    samples = sorted(
        {one.text: one for one in samples}.values(), key=lambda one: hash_fraction(one.text)
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in samples)
    out.write_bytes(lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(samples)} samples, {len({one.language for one in samples})} languages")
    print(f"{len(lines):,} bytes, {out.stat().st_size:,} compressed")


def drawn(source: str, language: str, texts: Iterable[str], most: int = 0) -> list[Sample]:
    """Return bags of words of neighbouring texts, at most ``most`` by hash."""
    bags: list[str] = []
    bag: list[str] = []
    for text in texts:
        bag.extend(tokenize(_PLAIN.sub(" ", text))[:WORDS_A_SAMPLE])
        if len(bag) >= WORDS_A_SAMPLE:
            bags.append(" ".join(sorted(bag)))
            bag = []
    kept = sorted(dict.fromkeys(bags), key=hash_fraction)[: most or MOST.get(source, 1_000)]
    return [Sample(language, source, text) for text in kept]


def dictionary(folder: Path, name: str) -> Iterator[str]:
    """The definitions of a dictionary in dictd's format."""
    place = folder / "usr/share/dictd"
    for entry in read_dictionary(place / f"{name}.index", place / f"{name}.dict.dz"):
        yield entry.text[:_MAX_CHARS]


def drawn_prose(folder: Path, language: str) -> list[Sample]:
    """Return quotations and proverbs, except those meant to offend."""
    texts = [
        text
        for file in sorted((folder / "usr/share/games/fortunes").rglob("*"))
        if file.is_file() and file.suffix in ("", ".fortunes") and "off" not in file.parts
        for text in _utf8(file).split("\n%\n")
    ]
    return drawn("prose", language, texts, MOST["prose-en" if language == "en" else "prose"])


def _utf8(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def licences() -> Iterator[str]:
    """The paragraphs of the licences that every Debian system has."""
    for file in sorted(Path("/usr/share/common-licenses").iterdir()):
        if file.is_file() and not file.is_symlink():
            yield from file.read_text(encoding="utf-8", errors="replace").split("\n\n")


def manuals(folder: Path) -> Iterator[str]:
    """Yield the running text of manual pages, without roff requests and fonts."""
    for file in sorted((folder / "usr/share/man").rglob("*.gz")):
        lines = gzip.decompress(file.read_bytes()).decode("utf-8", "replace").splitlines()
        text = " ".join(line for line in lines if not line.startswith((".", "'")))
        yield re.sub(r"\\f.|\\.", "", text)[:_MAX_CHARS]


def software(lists: Path) -> Iterator[str]:
    """Descriptions of the packages that are not on the recorded Debian web."""
    index = PackageIndex(lists, print)
    packages = index.packages()
    on_web = set(choose_packages(packages))
    others = sorted(packages.keys() - on_web, key=hash_fraction)[:_DESCRIBED]
    for package in index.described(others).values():
        yield " ".join((package.summary, *package.paragraphs))[:_MAX_CHARS]


def interfaces(folder: Path) -> list[Sample]:
    """Return the texts of a web site's buttons, menus and messages (WordPress), per language."""
    place = folder / "usr/share/wordpress/wp-content/languages"
    texts: dict[str, list[str]] = {}
    for file in sorted(place.glob("*.mo")):
        if not (locale := _LOCALE.fullmatch(file.stem)):
            continue
        with file.open("rb") as opened:
            # A private name of gettext's: its only way to all texts.
            catalog = gettext.GNUTranslations(opened)._catalog  # type: ignore[attr-defined]
        keys = (key if isinstance(key, str) else key[0] for key in catalog)
        texts.setdefault("en", []).extend(keys if file.stem == "de_DE" else ())
        translated = (text for key, text in catalog.items() if key and text != key)
        texts.setdefault(locale[1], []).extend(translated)
    return [one for code in sorted(texts) for one in drawn("interface", code, texts[code])]


def descriptions(lists: Path) -> list[Sample]:
    """Return Debian's translated package descriptions, except those still in English."""
    options = [
        *("-o", f"Dir::State::Lists={lists}", "-o", "Dir::Cache::pkgcache="),
        *("-o", "Dir::Cache::srcpkgcache=", "-o", "Acquire::GzipIndexes=false"),
        *("-o", f"Acquire::Languages={','.join(LANGUAGES)}"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    if not any(lists.glob("*_Translation-*")):
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        done = run_tool(["apt-get", "-q", *options, "update"])
        if not any(lists.glob("*_Translation-*")):
            raise SystemExit(f"apt-get update brought no translations: {last_line(done.stderr)}")
    found: list[Sample] = []
    for code in LANGUAGES:
        for file in sorted(lists.glob(f"*_main_i18n_Translation-{code.replace('_', '%5f')}")):
            found.extend(drawn("packages", code.split("_")[0], _translated(file)))
    return found


def _translated(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        for fields in parse_stanzas(lines):
            texts = (fields[name] for name in fields if _DESCRIPTION.fullmatch(name))
            text = next(texts, "")
            _, _, rest = text.partition("\n")
            for paragraph in paragraphs(rest.splitlines()):
                if detect_fast(paragraph)[0] != "en":
                    yield paragraph[:_MAX_CHARS]


if __name__ == "__main__":
    main(sys.argv[1:])
