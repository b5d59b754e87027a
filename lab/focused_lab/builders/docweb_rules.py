"""Data files of the documentation web: packages, URL aliases, robots.txt rules, page labels.

The label rules in ``data/docweb_topics.toml``, each with its reason, derive a page's categories
from its URL and title. They label recorded webs and must never reach what guides a crawl.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from focused.errors import ConfigurationError

TIERS = ("small", "medium", "full")
DATA_FILES = ("webmap.tsv", "aliases.tsv", "robots.toml")


@dataclass(frozen=True, slots=True)
class DocPackage:
    """One package's documentation: ``root`` in the package is ``base`` on the web.

    ``base`` ends with a slash. ``category`` labels all its pages. ``with_api`` includes generated
    API pages.
    """

    package: str
    category: str
    root: str
    base: str
    with_api: bool = False


@dataclass(frozen=True, slots=True)
class UrlAlias:
    """A rule for other URLs of mapped pages, as host/path without scheme.

    ``*`` in ``replacement`` stands for the path of any base on that host.
    """

    pattern: re.Pattern[str]
    replacement: str


def load_doc_packages(tier: str) -> tuple[DocPackage, ...]:
    """Return the packages of a tier; each tier includes the previous ones."""
    wanted = TIERS[: TIERS.index(tier) + 1]
    rows = [line.split("\t") for line in _data_lines("webmap.tsv")]
    return tuple(
        DocPackage(package, category, root, base, with_api=api_tier in wanted)
        for package_tier, api_tier, package, category, root, base in rows
        if package_tier in wanted
    )


def load_aliases() -> tuple[UrlAlias, ...]:
    """Return the alias rules, in order."""
    rows = [line.split("\t") for line in _data_lines("aliases.tsv")]
    return tuple(UrlAlias(re.compile(pattern), replacement) for pattern, replacement in rows)


def load_disallowed_paths() -> dict[str, list[str]]:
    """Return the paths that a host's robots.txt disallows."""
    table: dict[str, list[str]] = tomllib.loads(_data("robots.toml"))["disallow"]
    return table


def _data(name: str) -> str:
    return (files("focused_lab.builders") / "data" / name).read_text(encoding="utf-8")


def _data_lines(name: str) -> list[str]:
    return [line for line in _data(name).splitlines() if line and not line.startswith("#")]


RULES_FILE = "docweb_topics.toml"


@dataclass(frozen=True, slots=True)
class TopicRule:
    """A label rule for pages below one address.

    ``at`` is the host and the beginning of the path. The patterns are searched in the rest of the
    path (``path``, ``without``) and in the title; None matches everything.
    """

    category: str
    at: str
    path: re.Pattern[str] | None = None
    without: re.Pattern[str] | None = None
    title: re.Pattern[str] | None = None

    def matches(self, address: str, title: str) -> bool:
        """Whether the rule applies to a page; ``address`` has no scheme."""
        if not address.startswith(self.at):
            return False
        rest = address[len(self.at) :]
        return (
            (self.path is None or self.path.search(rest) is not None)
            and (self.without is None or self.without.search(rest) is None)
            and (self.title is None or self.title.search(title) is not None)
        )


@dataclass(frozen=True, slots=True)
class TopicRules:
    """All label rules by host; ``never`` excludes pages by their path."""

    never: re.Pattern[str]
    rules: Mapping[str, tuple[TopicRule, ...]]

    def categories(self, url: str, title: str) -> tuple[str, ...]:
        """Return the page-level categories of a page, in the rules' order.

        None for pages without a title (redirect stubs) and for pages about releases, people and
        licences.
        """
        address = _address(url)
        host = address.partition("/")[0]
        candidates = self.rules.get(host, ())
        if not candidates or not title.strip() or self.never.search(address[len(host) :]):
            return ()
        found = (rule.category for rule in candidates if rule.matches(address, title))
        return tuple(dict.fromkeys(found))


def page_categories(url: str, title: str) -> tuple[str, ...]:
    """Return the page-level categories of a page of the documentation web.

    ``url`` is the page's public URL; scheme, fragment and query are ignored.
    """
    return load_topic_rules().categories(url, title)


@cache
def load_topic_rules() -> TopicRules:
    """Return the rules of the package's data file."""
    data = files("focused_lab.builders").joinpath("data", RULES_FILE).read_bytes()
    return parse_topic_rules(tomllib.loads(data.decode("utf-8")), RULES_FILE)


def parse_topic_rules(document: Mapping[str, Any], source: str) -> TopicRules:
    """Parse label rules from a TOML document.

    Raises ConfigurationError for unknown or missing keys and invalid patterns.
    """
    _only_known(document, {"never", "topic"}, source)
    by_host: dict[str, list[TopicRule]] = {}
    for topic in document.get("topic", ()):
        _only_known(topic, {"category", "why", "rule"}, f"{source}: topic")
        category = _required_text(topic, "category", f"{source}: topic")
        for table in topic.get("rule", ()):
            rule = _topic_rule(category, table, f"{source}: {category}")
            by_host.setdefault(rule.at.partition("/")[0], []).append(rule)
    return TopicRules(
        never=_pattern(document, "never", source) or re.compile(r"(?!)"),
        rules={host: tuple(rules) for host, rules in by_host.items()},
    )


def _topic_rule(category: str, table: Mapping[str, Any], where: str) -> TopicRule:
    _only_known(table, {"at", "path", "not", "title", "why"}, where)
    at = _required_text(table, "at", where)
    where = f"{where}: rule at {at}"
    if "/" not in at or "://" in at:
        raise ConfigurationError(
            f"{where}: give host and path without scheme, such as example.org/docs/"
        )
    _required_text(table, "why", where)
    return TopicRule(
        category,
        at,
        path=_pattern(table, "path", where),
        without=_pattern(table, "not", where),
        title=_pattern(table, "title", where),
    )


def _address(url: str) -> str:
    """Return host and path in one spelling."""
    bare = url.partition("://")[2] or url
    for mark in "#?":
        bare = bare.partition(mark)[0]
    return unquote(bare.removesuffix("index.html") if bare.endswith("/index.html") else bare)


def _required_text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where}: {key} is missing or empty")
    return value


def _pattern(table: Mapping[str, Any], key: str, where: str) -> re.Pattern[str] | None:
    if key not in table:
        return None
    try:
        return re.compile(_required_text(table, key, where))
    except re.error as error:
        raise ConfigurationError(f"{where}: {key} is no regular expression: {error}") from error


def _only_known(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table.keys() - known:
        raise ConfigurationError(
            f"{where}: unknown key {key}; known are {', '.join(sorted(known))}"
        )
