"""Reads a topic file and refuses, all at once, everything that is wrong in it."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import ada_url

from focused.errors import ConfigurationError
from focused.topic import (
    CRAWLS,
    ESTIMATORS,
    FOCUS,
    MAX_SAMPLES,
    MAX_WARC_BYTES,
    NOINDEX,
    WARC_RECORDS,
    Budget,
    Output,
    Politeness,
    Scope,
    Seeds,
    Topic,
    Training,
    WarcRecords,
)
from focused.topic_keys import TOPIC_KEYS
from focused.topic_table import Problems, Table

SECTIONS = {name: tuple(key.name for key in keys) for name, keys in TOPIC_KEYS.items()}
"""Every section of a topic file and its keys; ``""`` is the head of the file."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CONTACT = re.compile(r"https?://[^\s/]+\.[^\s/]+|[^\s@<>()]+@[^\s@<>()]+\.[A-Za-z]{2,}")
_CONTENT_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_PARAMETER = re.compile(r"[^\s&=#*?]+\*?")
_LANGUAGE = re.compile(r"[a-z]{2}")
_USER_AGENT_EXAMPLE = 'user_agent = "MyBot/1.0 (+https://my.site/bot; me@my.site)"'


def load_topic(path: Path) -> Topic:
    """Read the topic file at ``path``.

    Relative paths in it are relative to its folder. Raises
    :class:`ConfigurationError` with one line per problem, each naming file
    and key, when anything is missing, unknown, of the wrong type or unusable.
    """
    problems = Problems()
    head = Table("", _read_toml(path), problems)
    head.refuse_unknown((*SECTIONS[""], *(name for name in SECTIONS if name)), SECTIONS)
    name = _name(head, path)
    topic = Topic(
        name=name,
        path=path,
        description=head.text("description"),
        seeds=_seeds(_section(head, "seeds"), path.parent),
        training=_training(_section(head, "training"), path.parent, name),
        scope=_scope(_section(head, "scope")),
        politeness=_politeness(_section(head, "politeness")),
        budget=_budget(_section(head, "budget")),
        output=_output(_section(head, "output"), path.parent, name),
    )
    if topic.scope.max_pages_per_address is not None and not topic.politeness.per_address:
        problems.add("scope.max_pages_per_address", "needs politeness.per_address = true")
    if problems.lines:
        raise ConfigurationError("\n".join(f"{path}: {line}" for line in problems.lines))
    return topic


def _read_toml(path: Path) -> dict[str, object]:
    try:
        # utf-8-sig: Windows editors put a byte order mark in front, TOML allows none
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such topic file") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from None


def _section(head: Table, name: str) -> Table:
    value = head.values.get(name, {})
    if not isinstance(value, dict):
        head.wrong(name, f"must be a section: a line [{name}] with its keys below")
        value = {}
    section = Table(name, value, head.problems)
    section.refuse_unknown(SECTIONS[name], SECTIONS)
    return section


def _name(head: Table, path: Path) -> str:
    name = head.text("name")
    if "name" not in head.values:
        head.wrong("name", f'required; for example name = "{path.stem}"')
    elif isinstance(head.values["name"], str) and not _NAME.fullmatch(name):
        head.wrong("name", f'"{name}" must be letters, digits, ".", "_" and "-": it names files')
    return name


def _seeds(section: Table, folder: Path) -> Seeds:
    urls = dict.fromkeys(section.texts("urls"))
    for url in urls:
        if complaint := _unusable(url):
            section.wrong("urls", complaint)
    if named := section.text("file"):
        urls |= dict.fromkeys(_seeds_of_file(section, _beside(folder, named)))
    elif not urls and "urls" not in section.values:
        section.wrong(
            "urls", 'required, or file; for example urls = ["https://docs.python.org/3/"]'
        )
    elif section.values.get("urls") == []:
        section.wrong("urls", "is empty; a crawl needs at least one page to start from")
    return Seeds(tuple(urls), section.flag("robots_sitemaps", False))


def url_of_line(line: str) -> str:
    """The URL in a line of a file of URLs, without a comment; empty when there is none."""
    return re.sub(r"(^|\s)#.*", "", line).strip()


def _seeds_of_file(section: Table, path: Path) -> list[str]:
    """One URL per line; ``#`` starts a comment on a line of its own or after a blank."""
    urls = []
    for number, line in enumerate(_lines(section, "file", path), start=1):
        url = url_of_line(line)
        if not url:
            continue
        if complaint := _unusable(url):
            section.wrong("file", f"{path}:{number}: {complaint}")
        urls.append(url)
    if not urls and path.is_file():
        section.wrong("file", f"{path}: holds no URL")
    return urls


def _lines(section: Table, key: str, path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        section.wrong(key, f"{path}: there is no such file")
    except (OSError, UnicodeDecodeError) as error:
        section.wrong(key, f"{path}: cannot be read as UTF-8 text: {error}")
    return []


def _unusable(seed: str) -> str | None:
    """Why ``seed`` cannot be fetched, or None when it can."""
    try:
        url = ada_url.URL(seed)
    except ValueError:
        absolute = "" if "://" in seed else "; it must start with https:// or http://"
        return f'"{seed}" is no URL{absolute}'
    if url.protocol not in ("http:", "https:"):
        return f'"{seed}" is a {url.protocol} address; only http and https can be fetched'
    return None


def _training(section: Table, folder: Path, name: str) -> Training:
    directory = tuple(_beside(folder, entry) for entry in section.texts("directory"))
    if "directory" not in section.values:
        section.wrong("directory", 'required; for example directory = ["directories/mine.tsv"]')
    elif section.values["directory"] == []:
        section.wrong("directory", "is empty; the topic is learned from at least one file")
    for path in directory:
        if not path.exists():
            section.wrong("directory", f"{path}: there is no such file or folder")
    good = tuple(category.rstrip("/") for category in section.texts("good"))
    if "good" not in section.values:
        section.wrong("good", 'required; for example good = ["Top/Computers/Databases"]')
    elif section.values["good"] == [] or "" in good:
        section.wrong("good", "is empty; name the categories that are the topic")
    model = _beside(folder, section.text("model") or f"{name}.joblib")
    labels = section.text("labels")
    precision, recall = section.share("precision"), section.share("recall")
    if precision is not None and recall is not None:
        section.wrong("recall", "the threshold can be chosen for precision or for recall, not both")
    prior = section.text("link_prior") or "all-webs"
    return Training(
        directory=directory,
        good=good,
        model=model,
        estimator=section.one_of("estimator", ESTIMATORS),
        link_prior=str(_beside(folder, prior)) if prior.endswith(".json") else prior,
        labels=_beside(folder, labels) if labels else model.parent / f"{name}.labels.jsonl",
        focus=section.one_of("focus", FOCUS),
        max_samples=section.whole("max_samples", MAX_SAMPLES, at_least=10),
        precision=precision,
        recall=recall,
        background=section.flag("background", True),
        keywords=section.texts("keywords"),
    )


def _scope(section: Table) -> Scope:
    default = Scope()
    content_types = _matching(section, "content_types", _CONTENT_TYPE, "like text/html")
    dropped, kept = (_parameters(section, key) for key in ("drop_parameters", "keep_parameters"))
    for name in sorted(set(dropped) & set(kept)):
        section.wrong("keep_parameters", f'"{name}" is in drop_parameters, too')
    return Scope(
        allow_hosts=section.hosts("allow_hosts"),
        deny_hosts=section.hosts("deny_hosts"),
        allow_paths=_patterns(section, "allow_paths"),
        deny_paths=_patterns(section, "deny_paths"),
        languages=_matching(section, "languages", _LANGUAGE, "an ISO 639-1 code like en"),
        content_types=(
            content_types if "content_types" in section.values else default.content_types
        ),
        max_depth=section.maybe_whole("max_depth", at_least=0),
        max_pages_per_host=section.maybe_whole("max_pages_per_host", at_least=1),
        max_pages_per_directory=section.maybe_whole("max_pages_per_directory", at_least=1),
        max_pages_per_address=section.maybe_whole("max_pages_per_address", at_least=1),
        max_page_bytes=section.whole("max_page_bytes", default.max_page_bytes, at_least=1),
        max_links_per_page=section.whole(
            "max_links_per_page", default.max_links_per_page, at_least=1
        ),
        private_addresses=section.flag("private_addresses", default.private_addresses),
        near_duplicates=section.flag("near_duplicates", default.near_duplicates),
        mirrors=section.flag("mirrors", default.mirrors),
        traps=section.flag("traps", default.traps),
        drop_parameters=dropped,
        keep_parameters=kept,
    )


def _parameters(section: Table, key: str) -> tuple[str, ...]:
    names = section.texts(key)
    for name in names:
        if not _PARAMETER.fullmatch(name):
            section.wrong(
                key, f'"{name}" must be a name as it stands in URLs, or its beginning and *'
            )
    return names


def _patterns(section: Table, key: str) -> tuple[str, ...]:
    patterns = section.texts(key)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            section.wrong(key, f"{pattern!r} is no regular expression: {error}")
    return patterns


def _matching(section: Table, key: str, form: re.Pattern[str], like: str) -> tuple[str, ...]:
    entries = tuple(entry.lower() for entry in section.texts(key))
    for entry in entries:
        if not form.fullmatch(entry):
            section.wrong(key, f'"{entry}" must be {like}')
    return entries


def _politeness(section: Table) -> Politeness:
    user_agent = section.text("user_agent")
    if "user_agent" not in section.values:
        section.wrong(
            "user_agent", f"required: webmasters must know whom to ask; {_USER_AGENT_EXAMPLE}"
        )
    elif not user_agent.isascii() or not user_agent.isprintable():
        section.wrong("user_agent", "must be printable ASCII: it is sent in a header")
    elif isinstance(section.values["user_agent"], str) and not _CONTACT.search(user_agent):
        section.wrong(
            "user_agent", f"holds no contact (a URL or an e-mail address); {_USER_AGENT_EXAMPLE}"
        )
    default = Politeness(user_agent=user_agent)
    return Politeness(
        user_agent=user_agent,
        delay_s=section.number("delay_s", default.delay_s, zero=True),
        delays=section.numbers_by_host("delays"),
        fetch_time_factor=section.number("fetch_time_factor", default.fetch_time_factor, zero=True),
        per_address=section.flag("per_address", default.per_address),
        robots=section.flag("robots", default.robots),
        noindex=section.one_of("noindex", NOINDEX),
        nofollow=section.flag("nofollow", default.nofollow),
        concurrency=section.whole("concurrency", default.concurrency, at_least=1),
        timeout_s=section.number("timeout_s", default.timeout_s, zero=False),
        max_tries=section.whole("max_tries", default.max_tries, at_least=1),
        set_aside_s=section.number("set_aside_s", default.set_aside_s, zero=True),
        patience=section.number("patience", default.patience, zero=True),
    )


def _budget(section: Table) -> Budget:
    return Budget(
        pages=section.maybe_whole("pages", at_least=1),
        hours=section.maybe_number("hours", zero=False),
        bytes=section.maybe_whole("bytes", at_least=1),
    )


def _output(section: Table, folder: Path, name: str) -> Output:
    named = section.text("folder")
    path = _beside(folder, named) if named else CRAWLS / name
    if path.exists() and not path.is_dir():
        section.wrong("folder", f"{path}: is a file; name a folder")
    return Output(
        folder=path,
        warc=_warc(section),
        max_warc_bytes=section.whole("max_warc_bytes", MAX_WARC_BYTES, at_least=1),
        parquet=section.flag("parquet", True),
    )


def _warc(section: Table) -> WarcRecords:
    # true and false were the only values once.
    value = section.values.get("warc", True)
    if isinstance(value, bool):
        return "full" if value else "off"
    return section.one_of("warc", WARC_RECORDS)


def _beside(folder: Path, named: str) -> Path:
    """``named`` as seen from ``folder``, without ``..`` where that leads to the same place."""
    path = folder / named
    short = Path(os.path.normpath(path))
    return short if short.resolve() == path.resolve() else path
