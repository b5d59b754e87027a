"""One TOML file -> a frozen :class:`Topic`: everything about one crawl.

:func:`focused.topic.topic_file.load_topic` reads and checks the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

ESTIMATORS = ("naive-bayes", "logistic-regression", "linear-svm")
"""What may weigh a topic classifier's words; the first is the default."""

FOCUS_MODES = ("soft", "hard")
"""Which pages' links are followed; the first is the default."""

DEFAULT_MAX_SAMPLES = 10_000
"""At most so many good samples are learned from, and as many others, by default."""

WarcMode = Literal["full", "responses", "off"]
WARC_MODES: tuple[WarcMode, ...] = ("full", "responses", "off")
"""What the WARC holds; the first is the default."""

DEFAULT_MAX_WARC_BYTES = 1_000_000_000
"""A WARC file that has so many bytes is followed by another, by default."""

NOINDEX_ACTIONS = ("leave-out", "keep")
"""What becomes of pages that ask not to be indexed; the first is the default."""

_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the crawl starts; ``urls`` joins the inline list and the file's lines.

    With ``robots_sitemaps`` the sitemaps that the robots.txt of a seed's host
    names are seeds, too.
    """

    urls: tuple[str, ...]
    robots_sitemaps: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """What the topic classifier learns from, and how.

    ``good`` are category prefixes: these categories and all below are the
    topic. ``model`` is the file the trained model lives in. ``estimator`` is
    one of :data:`ESTIMATORS`. ``link_prior`` is what the apprentice starts from:
    the name of a prior that is shipped, or the path of a JSON file. ``labels``
    is the file that people's labels are kept in, which need not exist. Of the
    directory's pages at most ``max_samples`` good ones and as many others are used.
    ``focus`` is one of :data:`FOCUS`: with ``hard`` only links of pages whose likeliest
    category is good are followed, with ``soft`` those of all pages.
    The threshold for on topic is chosen for ``precision`` or ``recall``, in (0, 1],
    of held-out samples; None both: for the best F1. With ``background`` the general
    background stands for other samples that the directory has too few of. ``keywords``
    are what the topic began with (:mod:`focused.classifier.keyword_classifier`).
    """

    directory: tuple[Path, ...]
    good: tuple[str, ...]
    model: Path
    estimator: str = ESTIMATORS[0]
    link_prior: str = "all-webs"
    labels: Path | None = None
    focus: str = FOCUS_MODES[0]
    max_samples: int = DEFAULT_MAX_SAMPLES
    precision: float | None = None
    recall: float | None = None
    background: bool = True
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs and pages may be fetched and kept; empty means no limit.

    Hosts match themselves and their subdomains; paths are regular
    expressions searched in path and query; languages are ISO 639-1 codes.
    A directory is a host and the URL's path up to its last slash; an address
    is the IP address that a host's answers come from. Of a page's links the
    first ``max_links_per_page`` targets are taken. ``private_addresses``
    lets in what is no public server: loopback, private and link-local networks.
    With ``near_duplicates`` a page that repeats an earlier one but for a few
    words is a copy of it; with ``mirrors`` what stands under two prefixes is
    fetched once. ``drop_parameters`` are names of query parameters,
    or beginnings that end in ``*``, that tell nothing of the page; ``keep_parameters``
    are such names that always do.
    """

    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    allow_paths: tuple[str, ...] = ()
    deny_paths: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    content_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    max_depth: int | None = None
    max_pages_per_host: int | None = None
    max_pages_per_directory: int | None = None
    max_pages_per_address: int | None = None
    max_page_bytes: int = 10_000_000
    max_links_per_page: int = 5_000
    private_addresses: bool = False
    near_duplicates: bool = True
    mirrors: bool = True
    traps: bool = True
    drop_parameters: tuple[str, ...] = ()
    keep_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Politeness:
    """How hosts are treated. ``robots`` False is for one's own hosts only.

    ``patience`` is in delays: so long a link waits for a clearly better one
    whose host is not due yet. More of it: fewer pages a second, more of them
    on topic. A host is spared ``fetch_time_factor`` times as long as its last
    answer took. One that only fails is set aside for ``suspend_s``, and
    longer each time; with 0 it is given up at once. With ``per_address``
    hosts at one address are asked as if they were one. ``noindex`` is one of
    :data:`NOINDEX`; ``nofollow`` False follows links whose pages ask not to.
    ``delays`` has the hosts whose delay is another than ``delay_s``: they and
    their subdomains.
    """

    user_agent: str
    delay_s: float = 1.0
    delays: Mapping[str, float] = field(default_factory=dict, hash=False)
    fetch_time_factor: float = 10.0
    per_address: bool = True
    robots: bool = True
    noindex: str = NOINDEX_ACTIONS[0]
    nofollow: bool = True
    concurrency: int = 16
    timeout_s: float = 30.0
    max_tries: int = 3
    suspend_s: float = 3600.0
    patience: float = 2.0

    @property
    def patience_s(self) -> float:
        """:attr:`patience` in seconds."""
        return self.patience * self.delay_s

    def delay_of(self, host: str) -> float:
        """Seconds between two requests to ``host``, which may have a port.

        What :attr:`delays` has for it, or for the nearest domain above it; else :attr:`delay_s`.
        """
        name = _PORT.sub("", host) if self.delays else ""
        while name:
            if name in self.delays:
                return self.delays[name]
            name = name.partition(".")[2]
        return self.delay_s


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: whichever limit is reached first; None means no limit."""

    pages: int | None = None
    hours: float | None = None
    bytes: int | None = None


DEFAULT_CRAWLS_FOLDER = Path("crawls")
"""Where crawls lie whose topic names no folder: relative to where the command runs."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where the harvest goes.

    ``warc`` is one of :data:`WARC_MODES`; a WARC file that has ``max_warc_bytes``
    is followed by another.
    """

    folder: Path
    warc: WarcMode = "full"
    max_warc_bytes: int = DEFAULT_MAX_WARC_BYTES
    parquet: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """A crawl, wholly described. ``path`` is the TOML file it came from."""

    name: str
    path: Path
    seeds: Seeds
    training: Training
    politeness: Politeness
    output: Output
    description: str = ""
    scope: Scope = field(default_factory=Scope)
    budget: Budget = field(default_factory=Budget)

    def crawl_folder(self, policy: str) -> Path:
        """The folder of a crawl by ``policy``; by another than ``focused``, to compare, its own."""
        folder = self.output.folder
        return folder if policy == "focused" else folder.with_name(f"{folder.name}-{policy}")


def adapt_to_recorded_web(topic: Topic) -> Topic:
    """The topic as it runs where a recorded web answers, replayed or simulated.

    There is no server to spare, no host that comes back after an hour, and one
    address, at most, for all of them, which is this machine's own.
    """
    return replace(
        topic,
        scope=replace(topic.scope, private_addresses=True),
        politeness=replace(
            topic.politeness, fetch_time_factor=0.0, suspend_s=0.0, per_address=False
        ),
    )


def topic_to_json(topic: Topic) -> dict[str, object]:
    """The topic as JSON-able data, section by section, for the settings of a crawl that ran."""
    return {key: _to_json(value) for key, value in asdict(topic).items()}


def scope_from_json(described: Mapping[str, Any]) -> Scope | None:
    """The scope of a topic as :func:`topic_to_json` gave it; None when none is told.

    What other versions told besides is passed over.
    """
    scope = described.get("scope")
    if not isinstance(scope, dict):
        return None
    known = {each.name for each in fields(Scope)}
    kept: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in scope.items()
        if key in known
    }
    return Scope(**kept)


def _to_json(value: object) -> object:
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    # Who reads the settings may stand in another directory than who started the crawl.
    return str(value.absolute()) if isinstance(value, Path) else value
