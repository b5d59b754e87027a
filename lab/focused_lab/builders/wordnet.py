"""Build WordNet, a dictionary of word senses, as a web of small pages.

From Debian's ``wordnet-base``: one page for each synset under
``http://wordnet.princeton.edu/noun/jury-08395465``, with its words as title, its gloss as text,
and its pointers (kinds, parts, members, opposites ...) as lists of links. Topic domains (``;c``
pointers) are removed from the page, like ``(law)`` before its gloss, and become its labels,
``Top/Domains/Law``. A domain belongs to the domains that it is a kind of. Kinds of a term inherit
its domain unless they have their own (Magnini and Cavaglia 2000).

WordNet has 117,659 synsets, most without a domain. The web contains those with a domain, the
domains, and everything that their lists link to.

WordNet 3.0 is copyright 2006 by Princeton University; its licence allows use, copies and changes
for any purpose.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from focused.errors import RecordedWebError
from focused_lab.builders.built_web import (
    BuiltWeb,
    ReferenceSite,
    SitePage,
    build_site,
    contents_pages,
    headed_list,
    letter_of,
    link,
)
from focused_lab.builders.debian_packages import ProgressLine, fetch_packages, unpacked
from focused_lab.recorded_web.web_import import modified_at

BUILDER = "focused wordnet 1"
HOME = "http://wordnet.princeton.edu/"
_PACKAGE = "wordnet-base"
_DOMAIN = ";c"
_KIND_OF = ("@", "@i")
_NEARBY = 3
_LEADING_PARENTHESIS = re.compile(r"\A\(([^()]{1,40})\)\s*")
# Without domain pointers, which become labels.
_HEADINGS = {
    "Is a kind of": ("@",),
    "Is an instance of": ("@i",),
    "Kinds": ("~",),
    "Instances": ("~i",),
    "Part of": ("#p", "#m", "#s"),
    "Parts": ("%p",),
    "Members": ("%m",),
    "Substances": ("%s",),
    "Attributes": ("=",),
    "Opposites": ("!",),
    "Similar": ("&", "$"),
    "Entails": ("*",),
    "Causes": (">",),
    "Related forms": ("+", "\\", "<"),
    "See also": ("^",),
}


def build_wordnet(folder: Path, cache: Path, progress: ProgressLine) -> BuiltWeb:
    """Build the web of WordNet at ``folder``, unless it is up to date.

    The package is downloaded to ``cache`` and kept. Raises RecordedWebError without apt or network,
    for a damaged package, or if the folder contains something else.
    """

    def make() -> ReferenceSite:
        deb = fetch_packages([_PACKAGE], cache / "debs", progress)[_PACKAGE]
        with unpacked(deb, cache / "unpacked" / _PACKAGE) as files:
            data = files / "usr/share/wordnet"
            synsets = read_synsets(data)
            written_at = modified_at(data / "data.noun")
        domains = domains_by_synset(synsets)
        chosen = choose_synsets(synsets, domains)
        labels = {
            (address(chosen[key]), category(synsets[domain]))
            for key, own in inherited_domains(synsets, domains).items()
            for domain in own
            if key in chosen
        }
        pages = wordnet_pages(chosen, domains)
        return ReferenceSite(pages, sorted(labels), written_at, 1, deb.stat().st_size)

    return build_site(folder, "wordnet", BUILDER, progress, make)


def address(synset: Synset) -> str:
    """Return the URL of the synset's page."""
    kind, _, offset = synset.key.partition("-")
    return f"{HOME}{kind}/{quote(synset.words[0].replace(' ', '_'))}-{offset}"


def category(domain: Synset) -> str:
    """Return the label of a domain's terms: ``Top/Domains/Computer_Science``."""
    words = re.split(r"[ /-]", domain.words[0])
    return "Top/Domains/" + "_".join(word[:1].upper() + word[1:] for word in words)


def domains_by_synset(synsets: Mapping[str, Synset]) -> dict[str, tuple[str, ...]]:
    """Return the domains of each synset that has any.

    A domain belongs to itself and to all domains that it is a kind of.
    """
    terms = {key: synset.targets(_DOMAIN) for key, synset in synsets.items()}
    domains = {domain for own in terms.values() for domain in own}
    above = {domain: _with_kinds_above(domain, domains, synsets) for domain in sorted(domains)}
    found: dict[str, tuple[str, ...]] = {}
    for key, own in terms.items():
        direct = [*own, key] if key in domains else own
        if direct:
            found[key] = tuple(sorted({up for domain in direct for up in above[domain]}))
    return found


def _with_kinds_above(
    domain: str, domains: set[str], synsets: Mapping[str, Synset]
) -> frozenset[str]:
    found = {domain}
    seen = {domain}
    queue = [domain]
    while queue:
        for target in synsets[queue.pop()].targets(*_KIND_OF):
            if target not in seen:
                seen.add(target)
                queue.append(target)
                if target in domains:
                    found.add(target)
    return frozenset(found)


def inherited_domains(
    synsets: Mapping[str, Synset], domains: Mapping[str, Sequence[str]]
) -> dict[str, frozenset[str]]:
    """Return ``domains``, and those that kinds and instances inherit from a term.

    Only terms with a domain pointer pass it on, not the domains themselves.
    """
    found = {key: frozenset(own) for key, own in domains.items()}
    queue = [key for key in domains if synsets[key].targets(_DOMAIN)]
    while queue:
        key = queue.pop()
        for kind in synsets[key].targets("~", "~i"):
            known = found.get(kind, frozenset())
            if kind not in domains and not found[key] <= known:
                found[kind] = known | found[key]
                queue.append(kind)
    return found


def choose_synsets(
    synsets: Mapping[str, Synset], domains: Mapping[str, Sequence[str]]
) -> dict[str, Synset]:
    """Return the synsets with a domain and those that their lists link to, sorted by title."""
    shown = [symbol for symbols in _HEADINGS.values() for symbol in symbols]
    keys = set(domains).union(*(synsets[key].targets(*shown) for key in domains))
    ordered = sorted(keys, key=lambda key: (_title(synsets[key]).casefold(), key))
    return {key: synsets[key] for key in ordered}


def wordnet_pages(
    chosen: Mapping[str, Synset], domains: Mapping[str, Sequence[str]]
) -> Iterator[SitePage]:
    """Yield the home page, contents by first letter, and a page for each synset."""
    letters: dict[str, list[str]] = {}
    senses: dict[str, list[Synset]] = {}
    for synset in chosen.values():
        letters.setdefault(letter_of(synset.words[0]), []).append(_link(synset))
        for word in synset.words:
            senses.setdefault(word.casefold(), []).append(synset)
    home = SitePage(HOME, "WordNet", "<h1>WordNet</h1>\n<p>Contents by first letter.</p>")
    yield from contents_pages(home, f"{HOME}contents/", letters)
    names = {
        word.casefold() for own in domains.values() for key in own for word in chosen[key].words
    }
    ordered = list(chosen.values())
    for number, synset in enumerate(ordered):
        around = ordered[max(0, number - _NEARBY) : number + _NEARBY + 1]
        others = dict.fromkeys(other for word in synset.words for other in senses[word.casefold()])
        yield SitePage(
            address(synset),
            f"{_title(synset)} - WordNet",
            f"<h1>{html.escape(_title(synset))}</h1>\n<p>{synset.part_of_speech}</p>\n"
            f"<p>{html.escape(plain_gloss(synset, names))}.</p>\n"
            + "".join(_lists(synset, chosen))
            + headed_list("Other senses", [_link(o) for o in others if o is not synset])
            + f'<p class="nearby">Nearby: {" ".join(_link(o) for o in around if o is not synset)}'
            f'</p>\n<p class="nav">{link(HOME, "Home")} '
            f"{link(f'{HOME}contents/{letter_of(synset.words[0])}.html', 'Contents')}</p>",
        )


def plain_gloss(synset: Synset, domain_names: set[str]) -> str:
    """Return the gloss without its domain: ``(law) a body of citizens`` is ``a body of citizens``.

    ``domain_names`` are in lower case. Leading parentheses are removed if the synset has a domain,
    or if they contain a domain's name.
    """
    found = _LEADING_PARENTHESIS.match(synset.gloss)
    if found and (synset.targets(_DOMAIN) or found[1].casefold() in domain_names):
        return synset.gloss[found.end() :]
    return synset.gloss


def _lists(synset: Synset, chosen: Mapping[str, Synset]) -> Iterator[str]:
    """Yield the synset's relations as lists; targets outside of the web are left out."""
    for heading, symbols in _HEADINGS.items():
        targets = (chosen.get(key) for key in synset.targets(*symbols))
        yield headed_list(heading, [_link(target) for target in targets if target is not None])


def _title(synset: Synset) -> str:
    return ", ".join(synset.words)


def _link(synset: Synset) -> str:
    return link(address(synset), _title(synset))


PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
DATA_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_MARKER = re.compile(r"\((?:a|p|ip)\)\Z")


@dataclass(frozen=True, slots=True)
class Pointer:
    """A relation to another synset; ``symbol`` as in wninput(5WN), such as ``@``."""

    symbol: str
    target: str


@dataclass(frozen=True, slots=True)
class Synset:
    """Words with one meaning; ``key`` is part of speech and offset: ``noun-08395465``."""

    key: str
    words: tuple[str, ...]
    gloss: str
    pointers: tuple[Pointer, ...]

    @property
    def part_of_speech(self) -> str:
        """``noun``, ``verb``, ``adj`` or ``adv``."""
        return self.key.partition("-")[0]

    def targets(self, *symbols: str) -> list[str]:
        """Return the keys of the synsets that pointers with these symbols lead to."""
        return list(dict.fromkeys(p.target for p in self.pointers if p.symbol in symbols))


def read_synsets(folder: Path) -> dict[str, Synset]:
    """Read WordNet's database files (wndb(5WN)): all synsets by key, in file order.

    Raises RecordedWebError that names the missing or damaged file and line.
    """
    synsets: dict[str, Synset] = {}
    for name in DATA_FILES:
        try:
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise RecordedWebError(f"{folder / name} cannot be read: {error}") from error
        for number, line in enumerate(lines, start=1):
            if line.startswith(" "):
                continue
            try:
                synset = parse_synset(line)
            except ValueError as error:
                raise RecordedWebError(f"{folder / name}, line {number}: {error}") from error
            synsets[synset.key] = synset
    _require_targets(synsets, folder)
    return synsets


def parse_synset(line: str) -> Synset:
    """Parse a line of a data file; raises ValueError."""
    data, bar, gloss = line.partition(" | ")
    fields = data.split()
    try:
        offset, _, kind, word_count = fields[:4]
        words_end = 4 + 2 * int(word_count, 16)
        words = fields[4:words_end:2]
        pointers_end = words_end + 1 + 4 * int(fields[words_end])
        pointers = fields[words_end + 1 : pointers_end]
        if not bar or not words or len(fields) < pointers_end:
            raise ValueError("it is cut off")
        return Synset(
            f"{PARTS_OF_SPEECH[kind]}-{offset}",
            tuple(_MARKER.sub("", word).replace("_", " ") for word in words),
            " ".join(gloss.split()),
            tuple(
                Pointer(symbol, f"{PARTS_OF_SPEECH[target_kind]}-{target}")
                for symbol, target, target_kind in zip(
                    pointers[::4], pointers[1::4], pointers[2::4], strict=True
                )
            ),
        )
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"not a synset as in wndb(5WN): {error}") from error


def _require_targets(synsets: Mapping[str, Synset], folder: Path) -> None:
    for synset in synsets.values():
        for pointer in synset.pointers:
            if pointer.target not in synsets:
                raise RecordedWebError(
                    f"{folder}: {synset.key} points at {pointer.target}, which is not there"
                )
