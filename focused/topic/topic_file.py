"""Reads a topic file and reports all its errors at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Set
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ada_url

from focused.errors import ConfigurationError
from focused.topic import (
    DEFAULT_CRAWLS_FOLDER,
    DEFAULT_DOCUMENTS,
    DEFAULT_MAX_SAMPLES,
    DEFAULT_MAX_WARC_BYTES,
    DOCUMENT_FORMATS,
    ESTIMATORS,
    FOCUS_MODES,
    JAVASCRIPT_ACTIONS,
    NOINDEX_ACTIONS,
    PARTITION_UNITS,
    SPAM_ACTIONS,
    WARC_MODES,
    Budget,
    Cluster,
    DeepWeb,
    Output,
    Politeness,
    Revisit,
    Scope,
    Seeds,
    Topic,
    Training,
    WarcMode,
)
from focused.topic.toml_table import (
    ErrorList,
    TomlTable,
    declared_sections,
    key_names,
    read_section,
)

if TYPE_CHECKING:
    from focused.topic.login import Login

_HEAD_KEYS = frozenset(each.name for each in fields(Topic)) - {"path", "sections"}

_TOPIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CONTACT_PATTERN = re.compile(r"https?://[^\s/]+\.[^\s/]+|[^\s@<>()]+@[^\s@<>()]+\.[A-Za-z]{2,}")
_CONTENT_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_PARAMETER_NAME = re.compile(r"[^\s&=#*?]+\*?")
_LANGUAGE = re.compile(r"[a-z]{2}")
_USER_AGENT_EXAMPLE = 'user_agent = "MyBot/1.0 (+https://my.site/bot; me@my.site)"'


def load_topic(path: Path) -> Topic:
    """Read the topic file at ``path``; relative paths in it are relative to its folder.

    Raises :class:`ConfigurationError` with one line per problem, each naming file and key.
    """
    errors = ErrorList()
    head = TomlTable("", _read_toml(path), errors)
    declared = declared_sections()
    _report_unknown_keys(head, {*_HEAD_KEYS, *declared})
    name = _read_name(head, path)
    topic = Topic(
        name=name,
        path=path,
        description=head.text("description"),
        seeds=_read_seeds(_read_section(head, "seeds", Seeds), path.parent),
        training=_read_training(_read_section(head, "training", Training), path.parent, name),
        scope=_read_scope(_read_section(head, "scope", Scope)),
        politeness=_read_politeness(_read_section(head, "politeness", Politeness)),
        budget=_read_budget(_read_section(head, "budget", Budget)),
        revisit=_read_revisit(_read_section(head, "revisit", Revisit)),
        output=_read_output(_read_section(head, "output", Output), path.parent, name),
        deep_web=_read_deep_web(_read_section(head, "deep_web", DeepWeb)),
        login=_read_logins(head, path.parent),
        cluster=_read_cluster(head),
        sections={
            each: read_section(_read_section(head, each, kind), kind)
            for each, kind in declared.items()
        },
    )
    if topic.scope.max_pages_per_address is not None and not topic.politeness.per_address:
        errors.add("scope.max_pages_per_address", "needs politeness.per_address = true")
    if errors.lines:
        raise ConfigurationError("\n".join(f"{path}: {line}" for line in errors.lines))
    return topic


def _read_toml(path: Path) -> dict[str, object]:
    try:
        # utf-8-sig: Windows editors add a byte order mark, which TOML does not allow
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such topic file") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from None


def _read_section(head: TomlTable, name: str, kind: type[Any]) -> TomlTable:
    """Return a section; most of its keys are the fields of ``kind``."""
    value = head.values.get(name, {})
    if not isinstance(value, dict):
        head.add_error(name, f"must be a section: a line [{name}] with its keys below")
        value = {}
    section = TomlTable(name, value, head.errors)
    _report_unknown_keys(section, {each.name for each in fields(kind)})
    return section


def _report_unknown_keys(section: TomlTable, known: Set[str]) -> None:
    """Report keys that are neither in ``known`` nor in the reference, which is seldom read."""
    if section.values.keys() <= known:
        return
    from focused.topic.topic_keys import TOPIC_KEYS

    sections = {name: tuple(key.name for key in keys) for name, keys in TOPIC_KEYS.items()}
    sections |= {name: key_names(kind) for name, kind in declared_sections().items()}
    sections[""] = (*sections[""], *filter(None, sections))
    section.report_unknown_keys(sections[section.name], sections)


def _read_name(head: TomlTable, path: Path) -> str:
    name = head.text("name")
    if "name" not in head.values:
        head.add_error("name", f'required; for example name = "{path.stem}"')
    elif isinstance(head.values["name"], str) and not _TOPIC_NAME.fullmatch(name):
        head.add_error(
            "name", f'"{name}" must be letters, digits, ".", "_" and "-": it names files'
        )
    return name


def _read_seeds(section: TomlTable, folder: Path) -> Seeds:
    urls = dict.fromkeys(section.texts("urls"))
    for url in urls:
        if error := _seed_error(url):
            section.add_error("urls", error)
    if named := section.text("file"):
        urls |= dict.fromkeys(_read_seed_file(section, _resolve_path(folder, named)))
    elif not urls and "urls" not in section.values:
        section.add_error(
            "urls", 'required, or file; for example urls = ["https://docs.python.org/3/"]'
        )
    elif section.values.get("urls") == []:
        section.add_error("urls", "is empty; a crawl needs at least one page to start from")
    return Seeds(tuple(urls), section.boolean("robots_sitemaps", False))


def parse_url_line(line: str) -> str:
    """Return the URL of a line of a URL file, without a comment; "" if there is none."""
    return re.sub(r"(^|\s)#.*", "", line).strip()


def _read_seed_file(section: TomlTable, path: Path) -> list[str]:
    """Read one URL per line; ``#`` at the start or after a space begins a comment."""
    urls = []
    for number, line in enumerate(_read_lines(section, "file", path), start=1):
        url = parse_url_line(line)
        if not url:
            continue
        if error := _seed_error(url):
            section.add_error("file", f"{path}:{number}: {error}")
        urls.append(url)
    if not urls and path.is_file():
        section.add_error("file", f"{path}: holds no URL")
    return urls


def _read_lines(section: TomlTable, key: str, path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        section.add_error(key, f"{path}: there is no such file")
    except (OSError, UnicodeDecodeError) as error:
        section.add_error(key, f"{path}: cannot be read as UTF-8 text: {error}")
    return []


def _seed_error(seed: str) -> str | None:
    """Return why ``seed`` cannot be fetched, or None."""
    try:
        url = ada_url.URL(seed)
    except ValueError:
        absolute = "" if "://" in seed else "; it must start with https:// or http://"
        return f'"{seed}" is not a URL{absolute}'
    if url.protocol not in ("http:", "https:"):
        return f'"{seed}" is a {url.protocol} address; only http and https can be fetched'
    return None


def _read_training(section: TomlTable, folder: Path, name: str) -> Training:
    directory = tuple(_resolve_path(folder, entry) for entry in section.texts("directory"))
    if "directory" not in section.values:
        section.add_error("directory", 'required; for example directory = ["directories/mine.tsv"]')
    elif section.values["directory"] == []:
        section.add_error("directory", "is empty; the topic is learned from at least one file")
    for path in directory:
        if not path.exists():
            section.add_error("directory", f"{path}: there is no such file or folder")
    good = tuple(category.rstrip("/") for category in section.texts("good"))
    if "good" not in section.values:
        section.add_error("good", 'required; for example good = ["Top/Computers/Databases"]')
    elif section.values["good"] == [] or "" in good:
        section.add_error("good", "is empty; name the categories that are the topic")
    model = _resolve_path(folder, section.text("model") or f"{name}.joblib")
    labels = section.text("labels")
    precision, recall = section.share("precision"), section.share("recall")
    if precision is not None and recall is not None:
        section.add_error(
            "recall", "the threshold can be chosen for precision or for recall, not both"
        )
    prior = section.text("link_prior") or "all-webs"
    return Training(
        directory=directory,
        good=good,
        model=model,
        estimator=section.choice("estimator", ESTIMATORS),
        link_prior=str(_resolve_path(folder, prior)) if prior.endswith(".json") else prior,
        labels=_resolve_path(folder, labels) if labels else model.parent / f"{name}.labels.jsonl",
        focus=section.choice("focus", FOCUS_MODES),
        max_samples=section.whole("max_samples", DEFAULT_MAX_SAMPLES, at_least=10),
        precision=precision,
        recall=recall,
        background=section.boolean("background", True),
        keywords=section.texts("keywords"),
        embedding=section.boolean("embedding", True),
    )


def _read_scope(section: TomlTable) -> Scope:
    default = Scope()
    content_types = _read_matching(section, "content_types", _CONTENT_TYPE, "like text/html")
    dropped, kept = (
        _read_parameter_names(section, key) for key in ("drop_parameters", "keep_parameters")
    )
    for name in sorted(set(dropped) & set(kept)):
        section.add_error("keep_parameters", f'"{name}" is in drop_parameters, too')
    return Scope(
        allow_hosts=section.hosts("allow_hosts"),
        deny_hosts=section.hosts("deny_hosts"),
        allow_paths=_read_patterns(section, "allow_paths"),
        deny_paths=_read_patterns(section, "deny_paths"),
        languages=_read_matching(section, "languages", _LANGUAGE, "an ISO 639-1 code like en"),
        content_types=(
            content_types if "content_types" in section.values else default.content_types
        ),
        documents=_read_documents(section),
        max_depth=section.optional_integer("max_depth", at_least=0),
        max_pages_per_host=section.optional_integer("max_pages_per_host", at_least=1),
        max_pages_per_directory=section.optional_integer("max_pages_per_directory", at_least=1),
        max_pages_per_address=section.optional_integer("max_pages_per_address", at_least=1),
        max_page_bytes=section.whole("max_page_bytes", default.max_page_bytes, at_least=1),
        max_links_per_page=section.whole(
            "max_links_per_page", default.max_links_per_page, at_least=1
        ),
        private_addresses=section.boolean("private_addresses", default.private_addresses),
        near_duplicates=section.boolean("near_duplicates", default.near_duplicates),
        mirrors=section.boolean("mirrors", default.mirrors),
        traps=section.boolean("traps", default.traps),
        spam=section.choice("spam", SPAM_ACTIONS),
        javascript=section.choice("javascript", JAVASCRIPT_ACTIONS),
        javascript_hosts=section.hosts("javascript_hosts"),
        drop_parameters=dropped,
        keep_parameters=kept,
    )


def _read_documents(section: TomlTable) -> tuple[str, ...]:
    if "documents" not in section.values:
        return DEFAULT_DOCUMENTS
    from focused.topic.document_formats import missing_document_library

    formats = section.texts("documents")
    for name in formats:
        if name not in DOCUMENT_FORMATS:
            section.add_error(
                "documents", f'there is no format "{name}"; known are {", ".join(DOCUMENT_FORMATS)}'
            )
        elif (library := missing_document_library(name)) is not None:
            section.add_error(
                "documents",
                f'"{name}" needs {library}, which is not installed: '
                "pip install 'focused-crawler[documents]'",
            )
    return formats


def _read_parameter_names(section: TomlTable, key: str) -> tuple[str, ...]:
    names = section.texts(key)
    for name in names:
        if not _PARAMETER_NAME.fullmatch(name):
            section.add_error(
                key, f'"{name}" must be a name as it stands in URLs, or its beginning and *'
            )
    return names


def _read_patterns(section: TomlTable, key: str) -> tuple[str, ...]:
    patterns = section.texts(key)
    for pattern in patterns:
        section.check_pattern(key, pattern)
    return patterns


def _read_matching(
    section: TomlTable, key: str, form: re.Pattern[str], like: str
) -> tuple[str, ...]:
    entries = tuple(entry.lower() for entry in section.texts(key))
    for entry in entries:
        if not form.fullmatch(entry):
            section.add_error(key, f'"{entry}" must be {like}')
    return entries


def _read_politeness(section: TomlTable) -> Politeness:
    user_agent = section.text("user_agent")
    if "user_agent" not in section.values:
        section.add_error(
            "user_agent", f"required: webmasters must know whom to ask; {_USER_AGENT_EXAMPLE}"
        )
    elif not user_agent.isascii() or not user_agent.isprintable():
        section.add_error("user_agent", "must be printable ASCII: it is sent in a header")
    elif isinstance(section.values["user_agent"], str) and not _CONTACT_PATTERN.search(user_agent):
        section.add_error(
            "user_agent", f"holds no contact (a URL or an e-mail address); {_USER_AGENT_EXAMPLE}"
        )
    default = Politeness(user_agent=user_agent)
    return Politeness(
        user_agent=user_agent,
        delay_s=section.number("delay_s", default.delay_s, zero=True),
        delays=section.numbers_by_host("delays"),
        fetch_time_factor=section.number("fetch_time_factor", default.fetch_time_factor, zero=True),
        per_address=section.boolean("per_address", default.per_address),
        robots=section.boolean("robots", default.robots),
        noindex=section.choice("noindex", NOINDEX_ACTIONS),
        nofollow=section.boolean("nofollow", default.nofollow),
        concurrency=section.whole("concurrency", default.concurrency, at_least=1),
        timeout_s=section.number("timeout_s", default.timeout_s, zero=False),
        max_tries=section.whole("max_tries", default.max_tries, at_least=1),
        suspend_s=section.number("suspend_s", default.suspend_s, zero=True),
        patience=section.number("patience", default.patience, zero=True),
    )


def _read_budget(section: TomlTable) -> Budget:
    default = Budget()
    return Budget(
        pages=section.optional_integer("pages", at_least=1),
        hours=section.optional_number("hours", zero=False),
        bytes=section.optional_integer("bytes", at_least=1),
        min_harvest=section.share("min_harvest"),
        min_harvest_pages=section.whole("min_harvest_pages", default.min_harvest_pages, at_least=1),
    )


def _read_revisit(section: TomlTable) -> Revisit:
    default = Revisit()
    revisit = Revisit(
        continuous=section.boolean("continuous", default.continuous),
        policy=section.text("policy") or default.policy,
        pages_per_day=section.optional_integer("pages_per_day", at_least=1),
        bytes_per_day=section.optional_integer("bytes_per_day", at_least=1),
        hours=section.optional_number("hours", zero=False),
        share=section.share("share"),
        min_interval_hours=section.number(
            "min_interval_hours", default.min_interval_hours, zero=True
        ),
        max_interval_days=section.optional_number("max_interval_days", zero=False),
        by_relevance=section.boolean("by_relevance", default.by_relevance),
        host_weights=section.numbers_by_host("host_weights"),
        path_weights=section.numbers_by_pattern("path_weights"),
    )
    longest_days = revisit.max_interval_days
    if longest_days is not None and revisit.min_interval_hours > longest_days * 24:
        section.add_error("min_interval_hours", "is longer than max_interval_days")
    return revisit


def _read_deep_web(section: TomlTable) -> DeepWeb:
    default = DeepWeb()
    return DeepWeb(
        hosts=section.hosts("hosts"),
        queries=section.whole("queries", default.queries, at_least=1),
        result_pages=section.whole("result_pages", default.result_pages, at_least=1),
        stop_after=section.whole("stop_after", default.stop_after, at_least=1),
    )


def _read_output(section: TomlTable, folder: Path, name: str) -> Output:
    named = section.text("folder")
    path = _resolve_path(folder, named) if named else DEFAULT_CRAWLS_FOLDER / name
    if path.exists() and not path.is_dir():
        section.add_error("folder", f"{path}: is a file; name a folder")
    return Output(
        folder=path,
        warc=_read_warc_mode(section),
        max_warc_bytes=section.whole("max_warc_bytes", DEFAULT_MAX_WARC_BYTES, at_least=1),
        parquet=section.boolean("parquet", True),
    )


def _read_logins(head: TomlTable, folder: Path) -> tuple[Login, ...]:
    if not head.values.get("login"):
        return ()
    from focused.topic.login import read_logins

    return read_logins(head, folder)


def _read_cluster(head: TomlTable) -> Cluster:
    section = _read_section(head, "cluster", Cluster)
    storage = section.text("storage")
    if storage and "://" not in storage:
        section.add_error("storage", 'is no URL; for example storage = "file:///mnt/crawls"')
    return Cluster(storage, section.choice("unit", PARTITION_UNITS))


def _read_warc_mode(section: TomlTable) -> WarcMode:
    # true and false were the only values once.
    value = section.values.get("warc", True)
    if isinstance(value, bool):
        return "full" if value else "off"
    return section.choice("warc", WARC_MODES)


def _resolve_path(folder: Path, named: str) -> Path:
    """Return ``named`` relative to ``folder``, without ``..`` where that is the same path."""
    path = folder / named
    normalised = Path(os.path.normpath(path))
    return normalised if normalised.resolve() == path.resolve() else path
