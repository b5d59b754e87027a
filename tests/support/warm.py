"""Crawls in processes that are forked from one where everything is imported already.

The same command line, a process of its own, a process's death; but the two
seconds in which Python reads Scrapy and scientific libraries are paid once.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.support.crawling import ROOT, Finished, command
from tests.support.forked import HANGS_AFTER_S, fork


def start_warm(
    topic: Path,
    address: str,
    *,
    largest_file_bytes: int | None = None,
    most_files_open: int | None = None,
    arguments: Sequence[str] = (),
    **settings: Any,
) -> BaseProcess:
    """Start ``scrapy crawl topic``; its output is in ``output`` beside the topic file."""
    arguments = [*command(topic, address, **settings)[2:], *arguments]
    output = topic.parent / "output"
    limits = {resource.RLIMIT_FSIZE: largest_file_bytes, resource.RLIMIT_NOFILE: most_files_open}
    return start_scrapy(arguments, output, limits=limits)


def start_scrapy(
    arguments: Sequence[str],
    output: Path,
    *,
    folder: Path = ROOT,
    limits: Mapping[int, int | None] | None = None,
) -> BaseProcess:
    """Start ``scrapy`` (``arguments`` from its name on) in a folder, with its output in a file."""
    return fork(arguments, out=output, folder=folder, limits=limits)


def crawl_warm(
    topic: Path, address: str, timeout_s: float = HANGS_AFTER_S, **given: Any
) -> Finished:
    """Run ``scrapy crawl topic`` to its end."""
    process = start_warm(topic, address, **given)
    process.join(timeout_s)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError("the crawl hangs")
    output = (topic.parent / "output").read_text(errors="replace")
    return Finished(process.exitcode, output, topic.parent / "out")
