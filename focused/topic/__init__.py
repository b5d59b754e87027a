"""The topic file as frozen dataclasses: a :class:`Topic` is everything about one crawl.

:func:`focused.topic.topic_file.load_topic` reads and validates the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from focused.topic.login import Login

_Section = TypeVar("_Section")

ESTIMATORS = ("naive-bayes", "logistic-regression", "linear-svm")
"""Estimators of the word weights; the first is the default."""

FOCUS_MODES = ("soft", "hard")
"""Which pages' links are followed; the first is the default."""

DEFAULT_MAX_SAMPLES = 10_000
"""Default maximum number of good samples, and of other samples."""

WarcMode = Literal["full", "responses", "off"]
WARC_MODES: tuple[WarcMode, ...] = ("full", "responses", "off")
"""Which records the WARC files hold; the first is the default."""

DEFAULT_MAX_WARC_BYTES = 1_000_000_000
"""Default size at which a new WARC file begins."""

NOINDEX_ACTIONS = ("leave-out", "keep")
"""What happens to pages with a noindex directive; the first is the default."""

DOCUMENT_FORMATS = ("pdf", "docx", "odt", "pptx", "epub", "jats", "text", "markdown", "latex")
"""The formats of documents that can be pages besides HTML."""

DEFAULT_DOCUMENTS = DOCUMENT_FORMATS[:6]
"""The formats that are pages by default. Plain texts of the Web are mostly logs, data and code."""

SPAM_ACTIONS = ("avoid", "report", "ignore")
"""What happens to pages that are probably spam; the first is the default."""

JAVASCRIPT_ACTIONS = ("report", "render", "ignore")
"""What happens to pages that show nothing without JavaScript; the first is the default."""

_CREDENTIALS = re.compile(r"//[^/@]*@")
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the crawl starts. ``urls`` are those of the inline list and of the seed file.

    With ``robots_sitemaps`` the sitemaps named in the seed hosts' robots.txt are seeds, too.
    """

    urls: tuple[str, ...]
    robots_sitemaps: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """Training data and options of the topic classifier.

    - ``good``: category prefixes; these categories and all below are the topic.
    - ``model``: the model file.
    - ``estimator``: one of :data:`ESTIMATORS`.
    - ``link_prior``: the apprentice's initial model: the name of a shipped prior, or the path
      of a JSON file.
    - ``labels``: the label file; it need not exist.
    - ``max_samples``: maximum number of good samples of the directory, and of other samples.
    - ``focus``: one of :data:`FOCUS_MODES`. With ``hard`` only links of pages whose most likely
      category is good are followed, with ``soft`` those of all pages.
    - ``precision`` or ``recall``: target of the on-topic threshold on held-out samples, in
      (0, 1]; None for both chooses the best F1.
    - ``background``: add the general background when the directory has few other samples.
    - ``keywords``: what the topic started from (:mod:`focused.classifier.keyword_classifier`).
    - ``embedding``: score links by the meaning of their words, too
      (:mod:`focused.classifier.semantic_scorer`).
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
    embedding: bool = True


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs and pages may be fetched and kept; empty means no limit.

    Hosts match themselves and their subdomains. Paths are regular expressions searched in path
    and query. Languages are ISO 639-1 codes. A directory is a host and the URL path up to its
    last slash; an address is the IP address of a host. ``documents`` are the
    formats that are pages besides HTML (:data:`DOCUMENT_FORMATS`). Each page
    contributes its first ``max_links_per_page`` link targets. ``private_addresses`` allows
    loopback, private and link-local networks. ``near_duplicates``, ``mirrors`` and ``traps``
    switch their detectors; ``spam`` is one of :data:`SPAM_ACTIONS`, ``javascript`` one of
    :data:`JAVASCRIPT_ACTIONS`. Scripts may also request ``javascript_hosts``.
    ``drop_parameters`` are names (or prefixes ending in ``*``) of query parameters that do not
    change the page; ``keep_parameters`` are names that always do.
    """

    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    allow_paths: tuple[str, ...] = ()
    deny_paths: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    content_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    documents: tuple[str, ...] = DEFAULT_DOCUMENTS
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
    spam: str = SPAM_ACTIONS[0]
    javascript: str = JAVASCRIPT_ACTIONS[0]
    javascript_hosts: tuple[str, ...] = ()
    drop_parameters: tuple[str, ...] = ()
    keep_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Politeness:
    """How hosts are treated. Set ``robots`` to False for your own hosts only.

    - ``patience``: how long, in delays, to wait for a clearly better link of a host that is
      not due. Higher values fetch fewer pages per second, more of them on topic.
    - ``fetch_time_factor``: minimum pause after a response, in multiples of the time that it took
      to fetch, and to parse in a parser process.
    - ``suspend_s``: suspension of a host that only fails; doubles each time. 0 gives the host
      up at once.
    - ``per_address``: treat hosts at one IP address as one host.
    - ``noindex``: one of :data:`NOINDEX_ACTIONS`; ``nofollow`` False follows nofollow links.
    - ``delays``: delay by host, for the host and its subdomains; others have ``delay_s``.
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
        """Return seconds between two requests to ``host``, which may have a port."""
        return number_of_host(self.delays, host, self.delay_s)


def number_of_host(by_host: Mapping[str, float], host: str, default: float) -> float:
    """Return the number of the most specific name in ``by_host`` that covers ``host``.

    A name covers itself and its subdomains; the port of ``host`` is ignored.
    """
    name = _PORT.sub("", host) if by_host else ""
    while name:
        if name in by_host:
            return by_host[name]
        name = name.partition(".")[2]
    return default


def covers_host(names: Collection[str], host: str) -> bool:
    """Whether one of ``names`` is ``host``, which may have a port, or a domain above it."""
    name = _PORT.sub("", host) if names else ""
    while name:
        if name in names:
            return True
        name = name.partition(".")[2]
    return False


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: at the first limit reached; None means no limit.

    ``min_harvest``, in (0, 1], is the least share of pages on topic among the last
    ``min_harvest_pages`` pages.
    """

    pages: int | None = None
    hours: float | None = None
    bytes: int | None = None
    min_harvest: float | None = None
    min_harvest_pages: int = 500


@dataclass(frozen=True, slots=True)
class Revisit:
    """How a crawl keeps its pages fresh. ``continuous`` crawls go on after the first harvest.

    - ``policy``: the revisit policy by name.
    - ``pages_per_day`` and ``bytes_per_day``: downloads of the continuous crawl, new pages
      included; None for ``pages_per_day``: a seventh of the collection.
    - ``hours``: running time after which the crawl stops; None: never.
    - ``share``: fixed share of the downloads that are revisits, in (0, 1]; None: revisits and new
      links compete by expected relevant new content.
    - ``max_interval_days``: time after which a page is visited whatever its value; None: the
      policy's own limit, three mean intervals for ``hazard``, longer for pages of weight below 1.
    - ``by_relevance``: weight pages by their relevance; otherwise all pages count the same.
    - ``host_weights``: factor by host, for the host and its subdomains; ``path_weights``: factor
      by regular expression searched in path and query.
    """

    continuous: bool = False
    policy: str = "hazard"
    pages_per_day: int | None = None
    bytes_per_day: int | None = None
    hours: float | None = None
    share: float | None = None
    min_interval_hours: float = 1.0
    max_interval_days: float | None = None
    by_relevance: bool = True
    host_weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    path_weights: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class DeepWeb:
    """Which search forms the crawl may use.

    ``hosts`` and their subdomains; none by default. Each form is sent at most ``queries`` queries,
    and ``result_pages`` pages of results are fetched for each. The crawl leaves a form after
    ``stop_after`` queries in a row without new relevant pages.
    """

    hosts: tuple[str, ...] = ()
    queries: int = 100
    result_pages: int = 5
    stop_after: int = 10


DEFAULT_CRAWLS_FOLDER = Path("crawls")
"""Parent of crawl folders that the topic does not name, relative to the working directory."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go. ``warc`` is one of :data:`WARC_MODES`."""

    folder: Path
    warc: WarcMode = "full"
    max_warc_bytes: int = DEFAULT_MAX_WARC_BYTES
    parquet: bool = True


PARTITION_UNITS = ("domain", "host")
"""What stays in one partition; the first is the default."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a crawl is divided among processes, and where those of several machines meet.

    ``storage`` is the shared storage as a URL of fsspec, empty for a crawl on one machine. ``unit``
    is one of :data:`PARTITION_UNITS`.
    """

    storage: str = ""
    unit: str = PARTITION_UNITS[0]


@dataclass(frozen=True, slots=True)
class Topic:
    """The complete description of a crawl. ``path`` is its TOML file."""

    name: str
    path: Path
    seeds: Seeds
    training: Training
    politeness: Politeness
    output: Output
    description: str = ""
    scope: Scope = field(default_factory=Scope)
    budget: Budget = field(default_factory=Budget)
    revisit: Revisit = field(default_factory=Revisit)
    login: tuple[Login, ...] = ()
    deep_web: DeepWeb = field(default_factory=DeepWeb)
    cluster: Cluster = field(default_factory=Cluster)
    sections: Mapping[str, Any] = field(default_factory=dict)

    def section(self, kind: type[_Section]) -> _Section:
        """Return the section of the feature that declares ``kind``, or its defaults."""
        for section in self.sections.values():
            if isinstance(section, kind):
                return section
        return kind()

    def crawl_folder(self, policy: str) -> Path:
        """Return the folder of a crawl by ``policy``; each baseline policy has its own."""
        folder = self.output.folder
        return folder if policy == "focused" else folder.with_name(f"{folder.name}-{policy}")


def adapt_to_recorded_web(topic: Topic) -> Topic:
    """Return the topic for a recorded web, replayed or simulated.

    Removes waiting for servers, suspension, and the limit per address: all hosts are served by
    this machine.
    """
    return replace(
        topic,
        scope=replace(topic.scope, private_addresses=True),
        politeness=replace(
            topic.politeness, fetch_time_factor=0.0, suspend_s=0.0, per_address=False
        ),
    )


def without_credentials(url: str) -> str:
    """Return a URL without user name and password."""
    return _CREDENTIALS.sub("//", url)


def topic_to_json(topic: Topic) -> dict[str, object]:
    """Return the topic as JSON-able data, for the settings of a finished crawl.

    Passwords in URLs, user names and references to secrets are left out.
    """
    storage = without_credentials(topic.cluster.storage)
    topic = replace(topic, cluster=replace(topic.cluster, storage=storage))
    described = asdict(replace(topic, login=()))
    described["login"] = [
        {"hosts": list(each.hosts), "method": each.method} for each in topic.login
    ]
    described |= described.pop("sections")
    return {key: _to_json(value) for key, value in described.items()}


def scope_from_json(described: Mapping[str, Any]) -> Scope | None:
    """Return the scope from the data of :func:`topic_to_json`; None if there is none.

    Ignores keys of other versions.
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
    # The settings may be read from another working directory.
    return str(value.absolute()) if isinstance(value, Path) else value
