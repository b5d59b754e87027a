"""Recall and precision of change detection, on known edits and on real versions of pages.

``python benchmarks/change_detection.py webs/docweb-small`` visits pages of a recorded web four
times. Between the visits something irrelevant changes on each page (a date, a counter, navigation,
the host's template, an advertisement), and in copies of the last visit the content too. Copies
count only for pages that are not called changed without changed content. With ``--versions OLD
NEW`` it compares two folders of Sphinx pages, as in the packages llvm-15-doc and llvm-16-doc of
Debian; the content has changed if and only if the page's source in ``_sources`` has. Tables are
written to ``benchmarks/results/change_detection/``.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from focused.crawl.revisits.change_detection import (
    ChangeKind,
    ContentChange,
    HostBoilerplate,
    VersionSignature,
    VersionText,
    detect_change,
    read_version,
)
from focused.recorded_web.recorded_web import RecordedWeb
from focused.web.content_hash import content_fingerprint, text_digest
from focused.web.html.parse import parse_page
from focused.web.html.text_blocks import text_blocks
from focused.web.page import Failed, Fetched, Page
from focused.web.urls import host_of

RESULTS = Path(__file__).parent / "results" / "change_detection"
PAGES_A_HOST = 12
MIN_PAGES_A_HOST = 8
VISITS = 4
HOSTS = 15
MAX_PAGE_CHARS = 100_000
_PARAGRAPH = re.compile(r"<p>([^<>]{80,})</p>")
_MONTHS = ("January", "March", "May", "June", "August", "October", "December")


@dataclass(frozen=True)
class Original:
    """A recorded page, and sentences of another host's page."""

    url: str
    html: str
    foreign: Sequence[str]


Irrelevant = Callable[[Original, int, random.Random], str]
"""Returns markup that differs between visits; the argument is the number of the visit."""

Edit = Callable[[Original, random.Random], str | None]
"""Returns the page's markup with changed content, or None if the page has no place for it."""


def date(page: Original, visit: int, rng: random.Random) -> str:
    """A date and a time."""
    day = f"{rng.randint(1, 28)} {rng.choice(_MONTHS)} {rng.randint(2001, 2026)}"
    return f"<p>Last modified on {day} at {rng.randint(10, 23)}:{rng.randint(10, 59)}</p>"


def counter(page: Original, visit: int, rng: random.Random) -> str:
    """Two counters, one in words that no list has."""
    return f"<p>{rng.randint(1, 10**6)} views</p><p>Impressions: {rng.randint(1, 10**6)}</p>"


def navigation(page: Original, visit: int, rng: random.Random) -> str:
    """A menu that declares itself, with other items on each page and visit."""
    items = "".join(f"<li><a href='/'>{each}</a></li>" for each in rng.sample(page.foreign, 3))
    return f"<div class='sidebar'><ul>{items}</ul></div>"


def template(page: Original, visit: int, rng: random.Random) -> str:
    """Site news that are the same on all pages of a host, and other ones at each visit."""
    same = random.Random(f"{host_of(page.url)} {visit}")
    return "".join(
        f"<div>Site news {same.randint(1, 10**9):x}th of autumn {i}</div>" for i in "abc"
    )


def declared_ad(page: Original, visit: int, rng: random.Random) -> str:
    """An advertisement that declares itself."""
    return f"<div class='box ad'>{rng.choice(page.foreign)}</div>"


def undeclared_ad(page: Original, visit: int, rng: random.Random) -> str:
    """An advertisement out of ten that look like content."""
    pool = [f"Buy more of what number {word} has to offer" for word in "abcdefghij"]
    return f"<div>{rng.choice(pool)}</div>"


IRRELEVANT: Mapping[str, Irrelevant] = {
    "date": date,
    "counter": counter,
    "declared navigation": navigation,
    "template": template,
    "declared advertisement": declared_ad,
    "undeclared advertisement": undeclared_ad,
}


def _with_paragraph(page: Original, rng: random.Random, change: Callable[[str], str]) -> str | None:
    found = list(_PARAGRAPH.finditer(page.html))
    if not found:
        return None
    chosen = rng.choice(found)
    return page.html[: chosen.start()] + change(chosen[0]) + page.html[chosen.end() :]


def one_word(page: Original, rng: random.Random) -> str | None:
    """Replace a word of a paragraph."""

    def change(paragraph: str) -> str:
        words = paragraph.split(" ")
        words[rng.randrange(1, len(words) - 1)] = "otherwise"
        return " ".join(words)

    return _with_paragraph(page, rng, change)


def number_in_prose(page: Original, rng: random.Random) -> str | None:
    """Replace a number of a sentence."""
    found = [
        each for each in _PARAGRAPH.finditer(page.html) if re.search(r"(?<= )\d+(?= )", each[1])
    ]
    if not found:
        return None
    chosen = rng.choice(found)
    text = re.sub(r"(?<= )\d+(?= )", "99917", chosen[0], count=1)
    return page.html[: chosen.start()] + text + page.html[chosen.end() :]


def sentence(page: Original, rng: random.Random) -> str | None:
    """Append a sentence to a paragraph."""
    return _with_paragraph(page, rng, lambda old: f"{old[:-4]} {rng.choice(page.foreign)}</p>")


def paragraph_added(page: Original, rng: random.Random) -> str | None:
    """Add a paragraph of five sentences."""
    text = " ".join(rng.sample(page.foreign, 5))
    return _with_paragraph(page, rng, lambda old: f"{old}<p>{text}</p>")


def paragraph_removed(page: Original, rng: random.Random) -> str | None:
    """Remove a paragraph."""
    return _with_paragraph(page, rng, lambda old: "")


def half(page: Original, rng: random.Random) -> str | None:
    """Replace every second paragraph."""
    found = list(_PARAGRAPH.finditer(page.html))
    if len(found) < 4:
        return None
    chosen = {each.start() for each in found[::2]}
    return _PARAGRAPH.sub(
        lambda each: f"<p>{rng.choice(page.foreign)}</p>" if each.start() in chosen else each[0],
        page.html,
    )


EDITS: Mapping[str, Edit] = {
    "one word": one_word,
    "number in prose": number_in_prose,
    "sentence added": sentence,
    "paragraph added": paragraph_added,
    "paragraph removed": paragraph_removed,
    "every second paragraph": half,
}


def main() -> None:
    """Compare, and write the tables."""
    options = _options()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with RecordedWeb.open(options.web) as web:
        originals = list(_originals(web, random.Random(options.seed)))
    tables = dict(zip(("false", "edits"), compare_edits(originals, options.seed), strict=True))
    if options.versions:
        tables["versions"] = compare_versions(*options.versions)
    for name, table in tables.items():
        table.to_csv(RESULTS / f"{options.web.name}-{name}.csv", index=False)
        print(f"\n{name}\n{table.to_string(index=False, float_format='%.3f')}")


def compare_edits(originals: Sequence[Original], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how often pages are called changed, without and with changed content."""
    by_host: dict[str, list[Original]] = defaultdict(list)
    for page in originals:
        by_host[host_of(page.url)].append(page)
    rows = []
    for name, irrelevant in IRRELEVANT.items():
        for pages in by_host.values():
            rng = random.Random(f"{seed} {name} {pages[0].url}")
            rows += [{"differs": name, **row} for row in _visit(pages, irrelevant, rng)]
    table = pd.DataFrame(rows)
    shares = {"pages": "sum", "text": "mean", "words": "mean", "signature": "mean"}
    false, recall = table[table["edit"] == ""], table[table["edit"] != ""]
    return (
        false.groupby(["differs", "visit"], sort=False).agg(shares).reset_index(),
        recall.groupby("edit", sort=False)
        .agg({**shares, "size": "mean", "true_size": "mean"})
        .reset_index(),
    )


def _visit(
    pages: Sequence[Original], irrelevant: Irrelevant, rng: random.Random
) -> Iterator[dict[str, object]]:
    boilerplate = HostBoilerplate()
    stored: dict[str, tuple[Page, VersionText, VersionSignature]] = {}
    for visit in range(VISITS):
        for page in rng.sample(pages, len(pages)):
            extra = irrelevant(page, visit, rng)
            parsed, text = _read(page.url, _with_start(page.html, extra))
            change = None
            if page.url in stored:
                old_page, old_text, signature = stored[page.url]
                change = detect_change(signature, text, boilerplate)
                yield _row(visit, "", old_page, parsed, change, 0.0)
                if visit == VISITS - 1 and change.kind is not ChangeKind.CHANGED:
                    for name, edit in EDITS.items():
                        html = edit(page, rng)
                        if html is not None:
                            copy, edited = _read(page.url, _with_start(html, extra))
                            found = detect_change(signature, edited, boilerplate)
                            size = _true_size(old_text, edited)
                            yield _row(visit, name, old_page, copy, found, size)
            stored[page.url] = parsed, text, boilerplate.add_page(page.url, text, change)


def _row(
    visit: int, edit: str, old: Page, new: Page, change: ContentChange, size: float
) -> dict[str, object]:
    return {
        "visit": visit + 1,
        "edit": edit,
        "pages": 1,
        "text": content_fingerprint(new) != content_fingerprint(old),
        "words": text_digest(new) != text_digest(old),
        "signature": change.kind is ChangeKind.CHANGED,
        "size": change.size,
        "true_size": size,
    }


def _true_size(old: VersionText, new: VersionText) -> float:
    """Share of words in blocks that only one version has."""
    sides = [
        {block.words: block.words.count(" ") + 1 for block in each.blocks} for each in (old, new)
    ]
    only = sum(sum(a[words] for words in a.keys() - b.keys()) for a, b in (sides, sides[::-1]))
    return only / max(1, sum(sum(each.values()) for each in sides))


def compare_versions(old: Path, new: Path) -> pd.DataFrame:
    """Return, for pages with unchanged and with changed source, how many are called changed."""
    boilerplate = HostBoilerplate()
    rng = random.Random(0)
    names = sorted(
        str(path.relative_to(old))
        for path in old.rglob("*.html")
        if (new / path.relative_to(old)).exists() and _source(old, path.relative_to(old))
    )
    before = {}
    for name in rng.sample(names, len(names)):
        page, text = _read(f"https://docs.test/{name}", (old / name).read_text())
        before[name] = page, boilerplate.add_page(name, text)
    rows = []
    for name in rng.sample(names, len(names)):
        page, text = _read(f"https://docs.test/{name}", (new / name).read_text())
        old_page, signature = before[name]
        change = detect_change(signature, text, boilerplate)
        boilerplate.add_page(name, text, change)
        rows.append(
            {
                "source": "same"
                if _source(old, Path(name)) == _source(new, Path(name))
                else "changed",
                "pages": 1,
                "text": content_fingerprint(page) != content_fingerprint(old_page),
                "words": text_digest(page) != text_digest(old_page),
                "signature": change.kind is ChangeKind.CHANGED,
            }
        )
    return pd.DataFrame(rows).groupby("source").sum().reset_index()


def _source(folder: Path, page: Path) -> bytes:
    file = folder / "_sources" / page.with_suffix(".rst.txt")
    return file.read_bytes() if file.exists() else b""


def _originals(web: RecordedWeb, rng: random.Random) -> Iterator[Original]:
    by_host: dict[str, list[str]] = defaultdict(list)
    for url in web.page_urls:
        by_host[host_of(url)].append(url)
    large = [urls for _, urls in sorted(by_host.items()) if len(urls) >= MIN_PAGES_A_HOST]
    chosen = rng.sample(large, min(HOSTS, len(large)))
    foreign: list[str] = [f"This sentence has {word} in it and stands alone" for word in "abcdef"]
    for urls in chosen:
        own: list[str] = []
        for url in rng.sample(urls, min(len(urls), PAGES_A_HOST)):
            response = web.get(url)
            html = response.body.decode("utf-8", "replace") if response is not None else ""
            if "<p>" in html and "<body" in html and len(html) <= MAX_PAGE_CHARS:
                own += [" ".join(each.split())[:200] for each in _PARAGRAPH.findall(html)[:5]]
                yield Original(url, html, foreign)
        if len(own) >= 10:
            foreign = own


def _with_start(html: str, extra: str) -> str:
    return re.sub(r"(<body[^>]*>)", lambda found: found[0] + extra, html, count=1)


def _read(url: str, html: str) -> tuple[Page, VersionText]:
    fetched = Fetched(url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())
    page = parse_page(fetched)
    page = Page(url) if isinstance(page, Failed) else page
    return page, read_version(content_fingerprint(page), page.title, text_blocks(fetched))


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("web", type=Path, help="folder of a recorded web")
    options.add_argument("--versions", type=Path, nargs=2, metavar=("OLD", "NEW"))
    options.add_argument("--seed", type=int, default=1)
    return options.parse_args()


if __name__ == "__main__":
    main()
