"""CPU time of the kernels per page: compiled, interpreted, and in an earlier commit.

``python benchmarks/kernels.py WEB [--former COMMIT] [--pages 200]`` runs each kernel by the module
that uses it on random pages of a recorded web, the forms in turn, and prints the median time per
page of each form, and the medians of its ratio to the compiled one on the same page. ``--former``
loads the modules of a commit as well, before they used kernels, and requires equal results.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from focused.web.page import Page
from focused_lab.recorded_web.recorded_web import RecordedWeb, page_reader

REPEATS = 7
RELATIVE_ERROR = 1e-6
"""Sums may be made in another order; hashes are exact."""


class Task(NamedTuple):
    """What is measured: ``run`` calls the module that uses the kernel."""

    name: str
    module: str
    kernel: str
    run: Callable[[ModuleType, Page], npt.NDArray[Any]]


PROSE = "It is a truth that a text has words and that some of the words are in it more than once. "


@cache
def popular_words(module: ModuleType) -> Any:
    """Return the popular words of prose."""
    return module.PopularWords.count([PROSE])


def signals_of(module: ModuleType, page: Page) -> npt.NDArray[np.float64]:
    """Return a page's spam signals; none for one that is too short."""
    found = module.content_signals(page, popular_words(module))
    return np.empty(0) if found is None else np.asarray(found)


TASKS = (
    Task(
        "words of the text",
        "focused.text.word_hashes",
        "word_hashing",
        lambda module, page: module.hash_texts((page.text,)).hashes,
    ),
    Task(
        "words of the links",
        "focused.text.word_hashes",
        "word_hashing",
        lambda module, page: module.hash_texts([link.anchor for link in page.links]).hashes,
    ),
    Task(
        "shingles",
        "focused.text.shingles",
        "shingle_hashing",
        lambda module, page: module.shingles(page.text),
    ),
    Task("signals of spam", "focused.spam.spam_classifier", "word_signals", signals_of),
)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("web", type=Path)
    parser.add_argument("--former", metavar="COMMIT")
    parser.add_argument("--pages", type=int, default=200)
    options = parser.parse_args()
    pages = read_pages(options.web, options.pages)
    for task in TASKS:
        print(f"{task.name}: {report(task, pages, options.former)}", flush=True)


def read_pages(folder: Path, count: int) -> Sequence[Page]:
    """Return random pages with text."""
    with RecordedWeb.open(folder) as web:
        read = page_reader(web)
        urls = sorted(web.page_urls)
        random.Random(0).shuffle(urls)
        found = (page for url in urls if (page := read(url)) is not None and page.text)
        return [page for _, page in zip(range(count), found, strict=False)]


def report(task: Task, pages: Sequence[Page], former: str | None) -> str:
    """Measure one kernel."""
    forms = {
        "compiled": importlib.import_module(task.module),
        "interpreted": with_interpreted_kernel(task),
    }
    if former is not None:
        forms["former"] = module_of_commit(task.module, former)
    times: dict[str, list[float]] = {form: [] for form in forms}
    for page in pages:
        results = [task.run(module, page) for module in forms.values()]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=RELATIVE_ERROR, atol=1e-9)
        for form, module in forms.items():
            times[form].append(min(seconds(task, module, page) for _ in range(REPEATS)))
    of_compiled = times.pop("compiled")
    described = [f"compiled {median(of_compiled) * 1e6:.0f} µs"]
    for form, taken in times.items():
        ratio = median(a / b for a, b in zip(taken, of_compiled, strict=True))
        described.append(f"{form} {median(taken) * 1e6:.0f} µs ({ratio:.1f} times)")
    return ", ".join(described)


def seconds(task: Task, module: ModuleType, page: Page) -> float:
    """Return the CPU time of one run."""
    begin = time.process_time()
    task.run(module, page)
    return time.process_time() - begin


def with_interpreted_kernel(task: Task) -> ModuleType:
    """Return a copy of the module that uses the kernel's source."""
    kernel = f"focused.kernels.{task.kernel}"
    source = Path("focused/kernels", f"{task.kernel}.py")
    interpreted = execute(kernel, source.read_text())
    module = importlib.import_module(task.module)
    assert module.__file__ is not None
    copy = execute(task.module, Path(module.__file__).read_text())
    for name, value in vars(copy).items():
        if getattr(value, "__module__", None) == kernel:
            setattr(copy, name, getattr(interpreted, name))
    return copy


def module_of_commit(name: str, commit: str) -> ModuleType:
    """Return a module as it was."""
    path = f"{name.replace('.', '/')}.py"
    source = subprocess.run(
        ["git", "show", f"{commit}:{path}"], check=True, capture_output=True, text=True
    ).stdout
    return execute(name, source)


def execute(name: str, source: str) -> ModuleType:
    """Run a module's source outside of the imported modules."""
    module = ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))  # noqa: S102  # our own modules
    return module


if __name__ == "__main__":
    main()
