"""No regular expression of the package backtracks in more than linear time."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import focused
import focused_lab
from tests.backtracking import ambiguities

FUNCTIONS = frozenset({"compile", "match", "search", "fullmatch", "split", "findall", "finditer"})
FUNCTIONS |= {"sub", "subn"}

# Found, and linear nevertheless.
HARMLESS = {
    "focused.web.feed_entries:_MARKUP": "what follows the first end tag is optional",
    "focused_lab.builders.foldoc:_ADDRESS": "reads a dictionary of our own choice",
    "focused.topic.topic_file:_CONTACT_PATTERN": "searched: its last loop cannot fail",
    "focused.web.robots.robots_file:_PATH_OF": "matched: its last loop cannot fail",
    "focused_lab.builders.docweb:_ABSOLUTE_LINK": "searched: its last loop cannot fail",
    "focused_lab.changing_web.changed_content:_HREF": "searched: its last loop cannot fail",
    "focused_lab.changing_web.changed_content:_HEAD_LINK": "nothing follows a last loop in it",
    "focused_lab.changing_web.changed_content:_LINK": "nothing follows a last loop in it",
}
# Made when they are needed; the number of such calls in each module.
MADE_LATER = {
    "focused.archive.crawl_tables": (1, "patterns of a topic file, of the user"),
    "focused.archive.warc_files": (1, "one run of digits between fixed texts"),
    "focused.cli.frontier": (1, "--matching, of the user"),
    "focused.crawl.revisits.collection": (1, "path_weights of a topic file, of the user"),
    "focused.crawl.steering": (1, "a command of the user"),
    "focused_lab.builders.docweb_rules": (2, "rules of the package"),
    "focused_lab.analysis.svg": (1, "a colour of the package"),
    "focused.scrapy_addon.metrics_server": (1, "names of statistics, which the package gives"),
    "focused.text.tokens": (2, "one set of characters, repeated once"),
    "focused.topic.value_kinds": (1, "patterns of a topic file, of the user"),
    "focused.web.scope_filter": (3, "patterns of a topic file, of the user"),
}


class Found(NamedTuple):
    """An expression and where it is."""

    place: str
    pattern: re.Pattern[Any]


def modules() -> Iterator[ModuleType]:
    for package in (focused, focused_lab):
        yield from modules_of(package)


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # mypyc puts a compiled module into a library beside it.
        if not each.name.endswith(("__main__", "__mypyc")):
            yield importlib.import_module(each.name)


def source_of(module: ModuleType) -> str:
    assert module.__file__ is not None
    name = "__init__" if hasattr(module, "__path__") else module.__name__.rpartition(".")[2]
    return Path(module.__file__).with_name(f"{name}.py").read_text()


def patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Yield the expressions in a value of a module."""
    bound_to = getattr(value, "__self__", None)
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(bound_to, re.Pattern):
        yield bound_to
    elif depth < 3 and isinstance(value, dict):
        for each in value.values():
            yield from patterns_in(each, depth + 1)
    elif depth < 3 and isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from patterns_in(each, depth + 1)


def calls_of_re(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of functions of ``re`` that stand in a function."""
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in inside:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in FUNCTIONS
        ):
            yield node


@cache
def found_expressions() -> tuple[list[Found], dict[str, int]]:
    """Return the expressions of all modules, and how many calls make others, by module."""
    found: dict[re.Pattern[Any], Found] = {}
    unknown: dict[str, int] = {}
    for module in modules():
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                found.setdefault(pattern, Found(f"{module.__name__}:{name}", pattern))
        for call in calls_of_re(ast.parse(source_of(module))):
            try:
                text = ast.literal_eval(call.args[0])
            except ValueError:
                unknown[module.__name__] = unknown.get(module.__name__, 0) + 1
                continue
            pattern = re.compile(text, flags_of(call))
            found.setdefault(pattern, Found(f"{module.__name__}:{call.lineno}", pattern))
    return list(found.values()), unknown


def flags_of(call: ast.Call) -> int:
    names = {
        node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)
    } & re.RegexFlag.__members__.keys()
    return sum({re.RegexFlag[name] for name in names}, start=re.RegexFlag(0))


def test_expressions_are_found_wherever_they_stand():
    places = {each.place for each in found_expressions()[0]}
    assert len(places) > 200
    assert "focused.web.urls:_HOST" in places


def test_no_expression_has_nested_or_adjacent_loops_over_the_same_characters():
    flagged = {
        each.place: f"{kinds} in {each.pattern.pattern!r}"
        for each in found_expressions()[0]
        if (kinds := ambiguities(each.pattern))
    }
    assert {place: why for place, why in flagged.items() if place not in HARMLESS} == {}
    assert HARMLESS.keys() - flagged.keys() == set(), "exceptions that are no longer needed"


def test_expressions_that_are_made_later_are_listed():
    listed = {module: calls for module, (calls, _) in MADE_LATER.items()}
    assert found_expressions()[1] == listed


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        (r"(a+)+b", ["nested"]),
        (r"(x+y*)*z", ["nested"]),
        (r"(\w+\s?)+$", ["nested"]),
        (r"a*b?a*c", ["adjacent"]),
        (r"\s*x?\s*+y", ["adjacent"]),
        (r"^\W*(next|>+)\W*$", ["adjacent"]),
        (r"a*b*c", []),
        (r"\s*+x?\s*y", []),
        (r"[a-z]+(?:\.[a-z]+)*$", []),
        (r"(?>a*)*b", []),
        (r".*,.*", ["adjacent"]),
        (r"\d+\.?\d*", ["adjacent"]),
    ],
)
def test_loops_are_compared_by_the_texts_that_they_share(pattern, kinds):
    assert ambiguities(re.compile(pattern)) == kinds
