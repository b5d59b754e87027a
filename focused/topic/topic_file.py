"""Reads a topic file and reports all its errors at once.

The keys are declared by the dataclasses of :mod:`focused.topic`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ada_url

from focused.errors import ConfigurationError
from focused.topic import (
    DEFAULT_CRAWLS_FOLDER,
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
)
from focused.topic.value_kinds import (
    TomlTable,
    declared_sections,
    read_feature_section,
    read_section,
)

if TYPE_CHECKING:
    from focused.topic.login import Login

_HEAD_KEYS = frozenset(each.name for each in fields(Topic)) - {"path", "sections"}

TOPIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CONTACT_PATTERN = re.compile(r"https?://[^\s/]+\.[^\s/]+|[^\s@<>()]+@[^\s@<>()]+\.[A-Za-z]{2,}")
_USER_AGENT_EXAMPLE = 'user_agent = "MyBot/1.0 (+https://my.site/bot; me@my.site)"'


def load_topic(path: Path) -> Topic:
    """Read the topic file at ``path``; relative paths in it are relative to its folder.

    Raises :class:`ConfigurationError` with one line per problem, each naming file, line and key.
    """
    errors: list[tuple[str, str]] = []
    head = TomlTable("", _read_toml(path), errors)
    declared = declared_sections()
    _report_unknown_keys(head, {*_HEAD_KEYS, *declared})
    name = _read_name(head, path)
    topic = Topic(
        name=name,
        path=path,
        description=head.text("description"),
        seeds=_read_seeds(_section(head, "seeds", Seeds), path.parent),
        training=_read_training(_section(head, "training", Training), path.parent, name),
        scope=_read_scope(_section(head, "scope", Scope)),
        politeness=_read_politeness(_section(head, "politeness", Politeness)),
        budget=read_section(_section(head, "budget", Budget), Budget),
        revisit=_read_revisit(_section(head, "revisit", Revisit)),
        output=_read_output(_section(head, "output", Output), path.parent, name),
        deep_web=read_section(_section(head, "deep_web", DeepWeb), DeepWeb),
        login=_read_logins(head, path.parent),
        cluster=_read_cluster(_section(head, "cluster", Cluster)),
        sections={
            each: read_feature_section(_section(head, each, kind), kind)
            for each, kind in declared.items()
        },
    )
    if topic.scope.max_pages_per_address is not None and not topic.politeness.per_address:
        head.add_error("scope.max_pages_per_address", "needs politeness.per_address = true")
    if errors:
        raise ConfigurationError("\n".join(_messages(path, errors)))
    return topic


def _messages(path: Path, errors: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each error, with the number of the line where its key stands."""
    text = path.read_text(encoding="utf-8-sig")
    for key, message in errors:
        number = line_of(text, key)
        yield f"{path}:{'' if number is None else f'{number}:'} {key}: {message}"


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
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from None


def _section(head: TomlTable, name: str, kind: type[Any]) -> TomlTable:
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
    for name, kind in declared_sections().items():
        sections[name] = tuple(each.name for each in fields(kind))
    sections[""] = (*sections[""], *filter(None, sections))
    section.report_unknown_keys(sections[section.name], sections)


def _read_name(head: TomlTable, path: Path) -> str:
    name = head.text("name")
    if "name" not in head.values:
        head.add_error("name", f'required; for example name = "{path.stem}"')
    elif isinstance(head.values["name"], str) and not TOPIC_NAME.fullmatch(name):
        head.add_error(
            "name", f'"{name}" must be up to 100 letters, digits, ".", "_", "-": it names files'
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
    return read_section(section, Seeds, urls=tuple(urls))


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
    training = read_section(
        section,
        Training,
        directory=directory,
        good=good,
        model=model,
        labels=_resolve_path(folder, labels) if labels else model.parent / f"{name}.labels.jsonl",
    )
    if training.precision is not None and training.recall is not None:
        section.add_error(
            "recall", "the threshold can be chosen for precision or for recall, not both"
        )
    prior = training.link_prior
    if prior.endswith(".json"):
        prior = str(_resolve_path(folder, prior))
    return replace(training, link_prior=prior)


def _read_scope(section: TomlTable) -> Scope:
    scope = read_section(section, Scope)
    for name in sorted(set(scope.drop_parameters) & set(scope.keep_parameters)):
        section.add_error("keep_parameters", f'"{name}" is in drop_parameters, too')
    return scope


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
    return read_section(section, Politeness, user_agent=user_agent)


def _read_revisit(section: TomlTable) -> Revisit:
    revisit = read_section(section, Revisit)
    longest_days = revisit.max_interval_days
    if longest_days is not None and revisit.min_interval_hours > longest_days * 24:
        section.add_error("min_interval_hours", "is longer than max_interval_days")
    return revisit


def _read_output(section: TomlTable, folder: Path, name: str) -> Output:
    named = section.text("folder")
    path = _resolve_path(folder, named) if named else DEFAULT_CRAWLS_FOLDER / name
    if path.exists() and not path.is_dir():
        section.add_error("folder", f"{path}: is a file; name a folder")
    given: dict[str, Any] = {"folder": path}
    # true and false were the only values once.
    if isinstance(section.values.get("warc"), bool):
        given["warc"] = "responses" if section.values["warc"] else "off"
    return read_section(section, Output, **given)


def _read_cluster(section: TomlTable) -> Cluster:
    cluster = read_section(section, Cluster)
    if cluster.storage and "://" not in cluster.storage:
        section.add_error("storage", 'is no URL; for example storage = "file:///mnt/crawls"')
    return cluster


def _read_logins(head: TomlTable, folder: Path) -> tuple[Login, ...]:
    if not head.values.get("login"):
        return ()
    from focused.topic.login import read_logins

    return read_logins(head, folder)


def _resolve_path(folder: Path, named: str) -> Path:
    """Return ``named`` relative to ``folder``, without ``..`` where that is the same path."""
    path = folder / named
    normalised = Path(os.path.normpath(path))
    return normalised if normalised.resolve() == path.resolve() else path


_HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]?\]")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]")
_NUMBERED = re.compile(r"([\w-]+)\[(\d+)\]")


def line_of(text: str, key: str) -> int | None:
    """Return the number of the line of a dotted key, of its section if it has none, or None.

    ``login[2].hosts`` is a key of the second ``[[login]]``. What looks like a key in a text of
    several lines is taken for one.
    """
    section, _, name = key.partition(".")
    name = name.partition(".")[0]
    numbered = _NUMBERED.fullmatch(section)
    section, place = (numbered[1], int(numbered[2])) if numbered else (section, 1)
    headers = Counter[str]()
    found, current = None, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            current = header[1]
            headers[current] += 1
            if current == section and headers[current] == place:
                found = number
        elif assigned := _KEY.match(line):
            is_there = current == section and headers[current] == place
            if (is_there and assigned[1] == name) or (not current and assigned[1] == section):
                return number
    return found
