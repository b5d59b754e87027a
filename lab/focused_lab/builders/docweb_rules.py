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
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec

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


_Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    at: _Text
    why: _Text
    path: _Text | None = None
    without: _Text | None = msgspec.field(default=None, name="not")
    title: _Text | None = None


class _Topic(msgspec.Struct, forbid_unknown_fields=True):
    category: _Text
    why: str = ""
    rule: tuple[_Rule, ...] = ()


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    never: _Text | None = None
    topic: tuple[_Topic, ...] = ()


def parse_topic_rules(document: Mapping[str, Any], source: str) -> TopicRules:
    """Parse label rules from a TOML document.

    Raises ConfigurationError for unknown or missing keys and invalid patterns.
    """
    try:
        parsed = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {error}") from error
    by_host: dict[str, list[TopicRule]] = {}
    for topic in parsed.topic:
        for rule in topic.rule:
            found = _topic_rule(topic.category, rule, f"{source}: {topic.category}: {rule.at}")
            by_host.setdefault(rule.at.partition("/")[0], []).append(found)
    return TopicRules(
        never=_pattern(parsed.never, f"{source}: never") or re.compile(r"(?!)"),
        rules={host: tuple(rules) for host, rules in by_host.items()},
    )


def _topic_rule(category: str, rule: _Rule, where: str) -> TopicRule:
    if "/" not in rule.at or "://" in rule.at:
        raise ConfigurationError(
            f"{where}: give host and path without scheme, such as example.org/docs/"
        )
    return TopicRule(
        category,
        rule.at,
        path=_pattern(rule.path, f"{where}: path"),
        without=_pattern(rule.without, f"{where}: not"),
        title=_pattern(rule.title, f"{where}: title"),
    )


def _pattern(text: str | None, where: str) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"{where} is no regular expression: {error}") from error


def _address(url: str) -> str:
    """Return host and path in one spelling."""
    bare = url.partition("://")[2] or url
    for mark in "#?":
        bare = bare.partition(mark)[0]
    return unquote(bare.removesuffix("index.html") if bare.endswith("/index.html") else bare)
