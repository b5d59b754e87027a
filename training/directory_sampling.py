"""Sample a directory file from the labelled pages of a recorded web, for training.

The sample is small, balanced and reproducible:

- *Candidates* are labelled pages that are not seeds and that robots.txt allows. Pages with labels
  of two topics are excluded. Of nested labels the lower one counts.
- *Size*: at most ``per_topic`` pages of a topic, and at most the share ``max_share`` of its pages.
  Pages of no topic (background) are sampled by category, in proportion to the square root of its
  pages.
- *Spread*: the n-th page of a host with N pages is taken at n / sqrt(N), so that each host
  contributes before one contributes much.
- *Randomness* is a hash of the URL with a fixed salt: changes of the web change few lines.

Titles and descriptions are those of the pages. Crawls mark training pages, and reports exclude
them.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text

from focused.errors import ConfigurationError
from focused.topic.topic_file import load_topic
from focused.web.decoding import decode
from focused.web.html.parse import parse_page
from focused.web.page import Failed, FailureKind, Fetched
from focused.web.robots.robots_rules import RobotsRules, rules_from_fetch
from focused.web.urls import host_of, normalize_url
from focused_lab.recorded_web.recorded_web import RecordedResponse, RecordedWeb

SALT = "focused directory sample 1"
USER_AGENT = "FocusedBot"
MAX_DESCRIPTION_CHARS = 240
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_MIN_SENTENCE_CHARS = 40


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes in pages; ``max_share`` is in (0, 1]."""

    per_topic: int = 60
    background: int = 700
    max_share: float = 0.15

    def __post_init__(self) -> None:
        if self.per_topic < 1 or self.background < 0 or not 0 < self.max_share <= 1:
            raise ConfigurationError(
                f"sample sizes: {self.per_topic} pages a topic, {self.background} of background, "
                f"a share of {self.max_share:g}: give at least 1, at least 0 and a share in (0, 1]"
            )


@dataclass(frozen=True, slots=True)
class SampledPage:
    """One line of a directory file; no field contains a tab or line break."""

    category: str
    url: str
    title: str
    description: str


def sample_directory(
    web: RecordedWeb,
    topics: Collection[str],
    avoid: Collection[str] = (),
    sizes: SampleSizes | None = None,
    unseen: Collection[str] = (),
) -> list[SampledPage]:
    """Sample the labelled pages of ``web``, sorted by category and URL.

    ``topics`` are the categories that crawls look for; all others are background. ``avoid`` are
    URLs to exclude, such as seeds. ``unseen`` are categories to ignore: those added to the
    labelling rules after the sample was made. Pages that cannot be parsed or have no title are
    skipped.
    """
    excluded = {url for url in map(web.find, avoid) if url is not None}
    robots = {root: _robots(web, root) for root in {_root(url) for url in web.page_urls}}
    labels = {
        url: web.labels.get(url, frozenset()).difference(unseen)
        for url in web.page_urls
        if url not in excluded and robots[_root(url)].allows(url, USER_AGENT)
    }
    candidates = candidates_by_category(labels, topics)
    chosen = choose_samples(candidates, frozenset(topics), sizes or SampleSizes())
    pages = (
        _described(category, web.get(url)) for category, urls in chosen.items() for url in urls
    )
    return sorted((page for page in pages if page is not None), key=lambda p: (p.category, p.url))


def candidates_by_category(
    labels: Mapping[str, Collection[str]], topics: Collection[str]
) -> dict[str, list[str]]:
    """Return URLs by the category that they represent."""
    found: dict[str, list[str]] = {}
    for url, names in labels.items():
        own = [name for name in names if not any(other.startswith(name + "/") for other in names)]
        on_topic = [name for name in own if name in topics]
        if len(on_topic) == 1 or (not on_topic and own):
            found.setdefault(on_topic[0] if on_topic else min(own), []).append(url)
    return found


def choose_samples(
    candidates: Mapping[str, Sequence[str]], topics: Collection[str], sizes: SampleSizes
) -> dict[str, list[str]]:
    """Return the sampled URLs of each category, in sampling order."""
    roots = {name: math.sqrt(len(urls)) for name, urls in candidates.items() if name not in topics}
    unit = sizes.background / max(sum(roots.values()), 1.0)
    return {
        name: spread_over_hosts(urls)[
            : min(
                sizes.per_topic if name in topics else round(unit * roots[name]),
                int(sizes.max_share * len(urls)),
            )
        ]
        for name, urls in candidates.items()
    }


def spread_over_hosts(urls: Iterable[str]) -> list[str]:
    """Return all URLs in sampling order, independent of their given order."""
    by_host: dict[str, list[str]] = {}
    for url in sorted(urls, key=_hash_rank):
        by_host.setdefault(host_of(url), []).append(url)
    turns = [
        ((number + _hash_rank(url)) / math.sqrt(len(on_host)), url)
        for on_host in by_host.values()
        for number, url in enumerate(on_host)
    ]
    return [url for _, url in sorted(turns)]


def _hash_rank(url: str) -> float:
    """Return a pseudo-random number in [0, 1) for the URL."""
    digest = hashlib.sha256(f"{SALT}\n{url}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _root(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _robots(web: RecordedWeb, root: str) -> RobotsRules:
    url = f"{root}/robots.txt"
    response = web.get(url)
    if response is None or response.status != 200:
        return rules_from_fetch(Failed(url, FailureKind.CLIENT_ERROR, 404), now=0.0)
    return rules_from_fetch(Fetched(url, 200, response.headers, response.body), now=0.0)


def _described(category: str, response: RecordedResponse | None) -> SampledPage | None:
    if response is None:
        return None
    page = parse_page(Fetched(response.url, response.status, response.headers, response.body))
    if isinstance(page, Failed) or not page.title.strip():
        return None
    description = page.description or first_sentence(
        extract_plain_text(decode(response.body, response.headers)[0], main_content=True)
    )
    return SampledPage(category, response.url, _one_line(page.title), _one_line(description))


def first_sentence(text: str) -> str:
    """Return the first sentence of a page's text, or ``""``."""
    for line in text.splitlines():
        sentence = _SENTENCE_END.split(" ".join(line.split()))[0]
        if len(sentence) >= _MIN_SENTENCE_CHARS and sentence[-1:] in ".!?:":
            return sentence
    return ""


def _one_line(text: str) -> str:
    short = " ".join(text.split())
    if len(short) <= MAX_DESCRIPTION_CHARS:
        return short
    return short[:MAX_DESCRIPTION_CHARS].rsplit(" ", 1)[0] + " …"


def write_directory(path: Path, pages: Sequence[SampledPage]) -> None:
    """Write a directory file: category, url, title, description, one page a line."""
    lines = [f"{p.category}\t{p.url}\t{p.title}\t{p.description}\n" for p in pages]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("category\turl\ttitle\tdescription\n" + "".join(lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a directory file for topic files; see ``training/README.md``."""
    given = _parser().parse_args(arguments)
    topics = [load_topic(path) for path in given.topics]
    seeds = {normalize_url(url) or url for topic in topics for url in topic.seeds.urls}
    good = {category for topic in topics for category in topic.training.good}
    sizes = SampleSizes(given.per_topic, given.background, given.max_share)
    with RecordedWeb.open(given.web) as web:
        pages = sample_directory(web, good, seeds, sizes, given.unseen)
    write_directory(given.output, pages)
    for category in sorted({page.category for page in pages}):
        print(f"{sum(page.category == category for page in pages):5d}  {category}")


def _parser() -> argparse.ArgumentParser:
    usual = SampleSizes()
    parser = argparse.ArgumentParser(description="sample a directory file from a recorded web")
    parser.add_argument("web", type=Path, help="folder of the recorded web")
    parser.add_argument("output", type=Path, help="the directory file to write")
    parser.add_argument("topics", type=Path, nargs="+", help="topic files: what counts as topic")
    parser.add_argument(
        "--per-topic", type=int, default=usual.per_topic, help="most pages of a topic"
    )
    parser.add_argument(
        "--background", type=int, default=usual.background, help="about so many pages of no topic"
    )
    parser.add_argument(
        "--max-share", type=float, default=usual.max_share, help="of a category's pages, in (0, 1]"
    )
    parser.add_argument(
        "--unseen", action="append", default=[], help="a category to pass over; may be repeated"
    )
    return parser


if __name__ == "__main__":
    main()
