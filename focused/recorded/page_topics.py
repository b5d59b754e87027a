"""The judge of the doc web: categories of a page from its address and title.

The rules are data, ``data/docweb_topics.toml``, each with its reason; this
module reads and applies them. They label recorded webs for reports and for
directory samples and must never reach what guides a crawl.
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

RULES_FILE = "docweb_topics.toml"


@dataclass(frozen=True, slots=True)
class Rule:
    """Pages below one address; None as pattern matches everything.

    ``at`` is host and the beginning of the path, the patterns are searched in
    what follows (``path``, ``without``) and in the title.
    """

    category: str
    at: str
    path: re.Pattern[str] | None = None
    without: re.Pattern[str] | None = None
    title: re.Pattern[str] | None = None

    def matches(self, address: str, title: str) -> bool:
        """Whether a page is one of this rule's; ``address`` has no scheme."""
        if not address.startswith(self.at):
            return False
        rest = address[len(self.at) :]
        return (
            (self.path is None or self.path.search(rest) is not None)
            and (self.without is None or self.without.search(rest) is None)
            and (self.title is None or self.title.search(title) is not None)
        )


@dataclass(frozen=True, slots=True)
class PageTopics:
    """All rules, by host name; ``never`` is searched in the path of every page."""

    never: re.Pattern[str]
    rules: Mapping[str, tuple[Rule, ...]]

    def categories(self, url: str, title: str) -> tuple[str, ...]:
        """Categories that the page earns by itself, in the rules' order, each once.

        Empty for pages without a title (they are stubs that redirect) and for
        pages about releases, people and paperwork.
        """
        address = _address(url)
        host = address.partition("/")[0]
        candidates = self.rules.get(host, ())
        if not candidates or not title.strip() or self.never.search(address[len(host) :]):
            return ()
        found = (rule.category for rule in candidates if rule.matches(address, title))
        return tuple(dict.fromkeys(found))


def page_categories(url: str, title: str) -> tuple[str, ...]:
    """Page-level categories of a page of the doc web; see :class:`PageTopics`.

    ``url`` is the page's public address, http or https, fragment and query
    ignored; ``title`` the text of its title element.
    """
    return shipped_topics().categories(url, title)


@cache
def shipped_topics() -> PageTopics:
    """The rules that come with the package."""
    data = files("focused.recorded").joinpath("data", RULES_FILE).read_bytes()
    return parse_topics(tomllib.loads(data.decode("utf-8")), RULES_FILE)


def parse_topics(document: Mapping[str, Any], source: str) -> PageTopics:
    """Build the rules from a parsed TOML document.

    Raises ConfigurationError naming ``source`` and the key for unknown or
    missing keys and for patterns that don't compile.
    """
    _only_known(document, {"never", "topic"}, source)
    by_host: dict[str, list[Rule]] = {}
    for topic in document.get("topic", ()):
        _only_known(topic, {"category", "why", "rule"}, f"{source}: topic")
        category = _text(topic, "category", f"{source}: topic")
        for table in topic.get("rule", ()):
            rule = _rule(category, table, f"{source}: {category}")
            by_host.setdefault(rule.at.partition("/")[0], []).append(rule)
    return PageTopics(
        never=_pattern(document, "never", source) or re.compile(r"(?!)"),
        rules={host: tuple(rules) for host, rules in by_host.items()},
    )


def _rule(category: str, table: Mapping[str, Any], where: str) -> Rule:
    _only_known(table, {"at", "path", "not", "title", "why"}, where)
    at = _text(table, "at", where)
    where = f"{where}: rule at {at}"
    if "/" not in at or "://" in at:
        raise ConfigurationError(
            f"{where}: give host and path without scheme, such as example.org/docs/"
        )
    _text(table, "why", where)
    return Rule(
        category,
        at,
        path=_pattern(table, "path", where),
        without=_pattern(table, "not", where),
        title=_pattern(table, "title", where),
    )


def _address(url: str) -> str:
    """Host and path with the spellings of one page made one."""
    bare = url.partition("://")[2] or url
    for mark in "#?":
        bare = bare.partition(mark)[0]
    return unquote(bare.removesuffix("index.html") if bare.endswith("/index.html") else bare)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where}: {key} is missing or empty")
    return value


def _pattern(table: Mapping[str, Any], key: str, where: str) -> re.Pattern[str] | None:
    if key not in table:
        return None
    try:
        return re.compile(_text(table, key, where))
    except re.error as error:
        raise ConfigurationError(f"{where}: {key} is no regular expression: {error}") from error


def _only_known(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table.keys() - known:
        raise ConfigurationError(
            f"{where}: unknown key {key}; known are {', '.join(sorted(known))}"
        )
