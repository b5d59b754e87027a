"""The topic file as frozen dataclasses: a :class:`Topic` is everything about one crawl.

Fields are annotated with the kinds of their values (:mod:`focused.topic.value_kinds`), by which
:func:`focused.topic.topic_file.load_topic` reads and validates the file.
:mod:`focused.topic.topic_keys` says what each key means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec

if TYPE_CHECKING:
    from focused.topic.login import Login
    from focused.topic.value_kinds import (
        Count,
        CountOrZero,
        Flag,
        Hosts,
        Languages,
        MediaTypes,
        Number,
        NumbersByHost,
        NumbersByPattern,
        ParameterNames,
        PathName,
        Patterns,
        Positive,
        Share,
        Text,
        Texts,
        choice,
        documents,
        texts,
        whole,
    )

_Section = TypeVar("_Section")

ESTIMATORS = ("naive-bayes", "logistic-regression", "linear-svm")
"""Estimators of the word weights; the first is the default."""

FOCUS_MODES = ("soft", "hard")
"""Which pages' links are followed; the first is the default."""

DEFAULT_MAX_SAMPLES = 10_000
"""Default maximum number of good samples, and of other samples."""

WarcMode = Literal["responses", "full", "pages", "off"]
WARC_MODES: tuple[WarcMode, ...] = ("responses", "full", "pages", "off")
"""Which records the WARC files hold; the first is the default."""

DEFAULT_MAX_WARC_BYTES = 1_000_000_000
"""Default size at which a new WARC file begins."""

NOINDEX_ACTIONS = ("leave-out", "keep")
"""What happens to pages with a noindex directive; the first is the default."""

DOCUMENT_FORMATS = ("pdf", "docx", "odt", "pptx", "epub", "jats", "text", "markdown")
"""The formats of documents that can be pages besides HTML."""

DEFAULT_DOCUMENTS = DOCUMENT_FORMATS[:6]
"""The formats that are pages by default. Plain texts of the Web are mostly logs, data and code."""

DOCUMENT_LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"pdf": "pypdfium2", "markdown": "markdown_it"}
)
"""The modules of the extra ``documents`` by format; other formats need none."""

SPAM_ACTIONS = ("avoid", "report", "ignore")
"""What happens to pages that are probably spam; the first is the default."""

JAVASCRIPT_ACTIONS = ("report", "render", "ignore")
"""What happens to pages that show nothing without JavaScript; the first is the default."""

_CREDENTIALS = re.compile(r"//[^/@]*@")
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where the crawl starts. ``urls`` are those of the inline list and of the seed file."""

    urls: Annotated[tuple[str, ...], texts("list of URLs")]
    robots_sitemaps: Flag = False


@dataclass(frozen=True, slots=True)
class Training:
    """Training data and options of the topic classifier.

    ``link_prior`` is the name of a shipped prior, or the path of a JSON file. The file ``labels``
    need not exist. ``precision`` or ``recall`` is the target of the on-topic threshold on held-out
    samples; None for both chooses the best F1.
    """

    directory: Annotated[tuple[Path, ...], texts("list of paths")]
    good: Annotated[tuple[str, ...], texts("list of categories")]
    model: PathName
    estimator: Annotated[str, choice(*ESTIMATORS)] = ESTIMATORS[0]
    link_prior: Text = "all-webs"
    labels: PathName | None = None
    focus: Annotated[str, choice(*FOCUS_MODES)] = FOCUS_MODES[0]
    max_samples: Annotated[int, whole(10)] = DEFAULT_MAX_SAMPLES
    precision: Share | None = None
    recall: Share | None = None
    background: Flag = True
    keywords: Texts = ()
    embedding: Flag = True


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs and pages may be fetched and kept; empty means no limit.

    Hosts match themselves and their subdomains. Paths are regular expressions searched in path
    and query. A directory is a host and the URL path up to its last slash; an address is the IP
    address of a host. Names in ``drop_parameters`` and ``keep_parameters`` may be prefixes ending
    in ``*``.
    """

    allow_hosts: Hosts = ()
    deny_hosts: Hosts = ()
    allow_paths: Patterns = ()
    deny_paths: Patterns = ()
    languages: Languages = ()
    content_types: MediaTypes = ("text/html", "application/xhtml+xml")
    documents: Annotated[tuple[str, ...], documents(DOCUMENT_FORMATS)] = DEFAULT_DOCUMENTS
    max_depth: CountOrZero | None = None
    max_pages_per_host: Count | None = None
    max_pages_per_address: Count | None = None
    max_page_bytes: Count = 10_000_000
    max_links_per_page: Count = 5_000
    private_addresses: Flag = False
    near_duplicates: Flag = True
    mirrors: Flag = True
    traps: Flag = True
    spam: Annotated[str, choice(*SPAM_ACTIONS)] = SPAM_ACTIONS[0]
    javascript: Annotated[str, choice(*JAVASCRIPT_ACTIONS)] = JAVASCRIPT_ACTIONS[0]
    javascript_hosts: Hosts = ()
    drop_parameters: ParameterNames = ()
    keep_parameters: ParameterNames = ()


@dataclass(frozen=True, slots=True)
class Politeness:
    """How hosts are treated. Set ``robots`` to False for your own hosts only.

    ``patience`` and ``fetch_time_factor`` are multiples of the delay and of the time that a
    response took. ``delays`` has the delay by host, for the host and its subdomains; others have
    ``delay_s``.
    """

    user_agent: Text
    delay_s: Number = 1.0
    delays: NumbersByHost = field(default_factory=dict, hash=False)
    fetch_time_factor: Number = 10.0
    per_address: Flag = True
    robots: Flag = True
    noindex: Annotated[str, choice(*NOINDEX_ACTIONS)] = NOINDEX_ACTIONS[0]
    nofollow: Flag = True
    concurrency: Count = 16
    timeout_s: Positive = 30.0
    max_tries: Count = 3
    suspend_s: Number = 3600.0
    patience: Number = 2.0

    @property
    def patience_s(self) -> float:
        """:attr:`patience` in seconds."""
        return self.patience * self.delay_s

    def delay_of(self, host: str) -> float:
        """Return seconds between two requests to ``host``, which may have a port."""
        return number_of_host(self.delays, host, self.delay_s)


def missing_document_library(name: str) -> str | None:
    """Return the module that a format needs and that is not installed, or None."""
    library = DOCUMENT_LIBRARIES.get(name)
    return library if library is not None and find_spec(library) is None else None


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
    """When to stop: at the first limit reached; None means no limit."""

    pages: Count | None = None
    hours: Positive | None = None
    bytes: Count | None = None
    min_harvest: Share | None = None
    min_harvest_pages: Count = 500


@dataclass(frozen=True, slots=True)
class Revisit:
    """How a crawl keeps its pages fresh. ``continuous`` crawls go on after the first harvest.

    None means: for ``pages_per_day`` a seventh of the collection; for ``share``, revisits and new
    links compete by expected relevant new content; for ``max_interval_days`` and ``min_pace`` the
    policy's own limit.
    """

    continuous: Flag = False
    policy: Text = "hazard"
    pages_per_day: Count | None = None
    bytes_per_day: Count | None = None
    hours: Positive | None = None
    share: Share | None = None
    min_interval_hours: Number = 1.0
    max_interval_days: Positive | None = None
    min_pace: Share | None = None
    by_relevance: Flag = True
    host_weights: NumbersByHost = field(default_factory=dict, hash=False)
    path_weights: NumbersByPattern = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class DeepWeb:
    """Which search forms the crawl may use: those of ``hosts`` and their subdomains."""

    hosts: Hosts = ()
    queries: Count = 100
    result_pages: Count = 5
    stop_after: Count = 10


DEFAULT_CRAWLS_FOLDER = Path("crawls")
"""Parent of crawl folders that the topic does not name, relative to the working directory."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go."""

    folder: PathName
    warc: Annotated[WarcMode, choice(*WARC_MODES)] = "responses"
    max_warc_bytes: Count = DEFAULT_MAX_WARC_BYTES
    parquet: Flag = True


PARTITION_UNITS = ("domain", "host")
"""What stays in one partition; the first is the default."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a crawl is divided among processes, and where those of several machines meet.

    ``storage`` is the shared storage as a URL of fsspec, empty for a crawl on one machine.
    """

    storage: Text = ""
    unit: Annotated[str, choice(*PARTITION_UNITS)] = PARTITION_UNITS[0]


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

    Ignores keys of other versions. Raises ValueError for a value of another type.
    """
    scope = described.get("scope")
    if scope is None:
        return None
    from focused.topic import value_kinds

    kinds = get_type_hints(Scope, localns=vars(value_kinds))
    return Scope(
        **{key: msgspec.convert(scope[key], kind) for key, kind in kinds.items() if key in scope}
    )


def _to_json(value: object) -> object:
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    # The settings may be read from another working directory.
    return str(value.absolute()) if isinstance(value, Path) else value
