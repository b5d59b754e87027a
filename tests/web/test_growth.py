"""The time of each function that takes foreign text is linear in the length of that text.

``python benchmarks/growth.py`` prints the measurements.
"""

import importlib
import inspect
import pkgutil
import random
from collections.abc import Callable, Iterator

import pytest
from growth import Growth, Pumped, growths, measure, texts_of
from growth_functions import EXCEPTIONS, READERS, Reader

import focused.documents
import focused.text
import focused.web

FOREIGN_TYPES = ("str", "bytes", "Fetched")
SAMPLED_PAIRS = 400


def harmful(found: Iterator[Growth]) -> list[str]:
    return [
        f"{each.pumped}: {each.full_s:.3f} s, exponent {each.exponent:.2f}"
        for each in found
        if each.is_harmful
    ]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_repeated_pieces_take_linear_time(reader):
    texts = list(texts_of(reader))
    first_frame = texts[: len(reader.pieces())]
    assert harmful(growths(reader, first_frame)) == []


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_repeated_pairs_of_pieces_take_linear_time(reader):
    texts = list(texts_of(reader, pairs=True))
    alone = len(reader.pieces()) * len(reader.frames)
    pairs = random.Random(1).sample(texts[alone:], min(SAMPLED_PAIRS, len(texts) - alone))
    assert harmful(growths(reader, [*texts[:alone], *pairs])) == []


def public_functions() -> Iterator[Callable[..., object]]:
    """Yield the public functions and methods of the packages that read foreign text."""
    for package in (focused.web, focused.documents, focused.text):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(each.name)).items():
                if name.startswith("_") or getattr(value, "__module__", "") != each.name:
                    continue
                if inspect.isfunction(value):
                    yield value
                elif inspect.isclass(value):
                    for method_name, method in vars(value).items():
                        function = getattr(method, "__func__", method)
                        if not method_name.startswith("_") and inspect.isfunction(function):
                            yield function


def takes_foreign_text(function: Callable[..., object]) -> bool:
    types = [kind for name, kind in function.__annotations__.items() if name != "return"]
    return any(word in kind for kind in map(str, types) for word in FOREIGN_TYPES)


def name_of(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def test_all_functions_that_take_foreign_text_are_measured():
    measured = {name_of(function) for reader in READERS for function in reader.functions}
    needed = {name_of(each) for each in public_functions() if takes_foreign_text(each)}
    assert sorted(needed - measured - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - (needed - measured)) == [], "no longer needed"


@pytest.mark.parametrize(
    ("seconds", "is_harmful"),
    [
        pytest.param(lambda chars: 1e-8 * chars**2, True, id="quadratic"),
        pytest.param(lambda chars: 1e-8 * chars, False, id="linear"),
        pytest.param(lambda chars: 1e-9 * chars * min(chars, 10_000), False, id="ends early"),
    ],
)
def test_quadratic_functions_are_told_from_linear_ones(seconds, is_harmful):
    reader = Reader("reader", str, (), chars=8_000, noise_s=0.0)
    found = measure(reader, Pumped("", "a", ""), cpu_s=lambda call, text: seconds(len(text)))
    assert found.is_harmful is is_harmful
