"""Crawls in processes that are forked from one where everything is imported already.

The same command line, a process of its own, a process's death; but the two
seconds in which Python reads Scrapy and scientific libraries are paid once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.support.crawling import ROOT, Finished, command


def start_warm(
    topic: Path,
    address: str,
    *,
    largest_file_bytes: int | None = None,
    most_files_open: int | None = None,
    arguments: Sequence[str] = (),
    **settings: Any,
) -> BaseProcess:
    """Start ``scrapy crawl topic``; what it says is in ``said`` beside the topic file."""
    arguments = [*command(topic, address, **settings)[2:], *arguments]
    said = topic.parent / "said"
    limits = {resource.RLIMIT_FSIZE: largest_file_bytes, resource.RLIMIT_NOFILE: most_files_open}
    return start_scrapy(arguments, said, limits=limits)


def start_scrapy(
    arguments: Sequence[str],
    said: Path,
    *,
    folder: Path = ROOT,
    limits: Mapping[int, int | None] | None = None,
) -> BaseProcess:
    """Start ``scrapy`` (``arguments`` from its name on) in a folder; ``said`` gets what it says."""
    process = _server().Process(target=_scrapy, args=(arguments, said, limits or {}, folder))
    process.start()
    return process


def crawl_warm(topic: Path, address: str, timeout_s: float = 45.0, **given: Any) -> Finished:
    """Run ``scrapy crawl topic`` to its end."""
    process = start_warm(topic, address, **given)
    process.join(timeout_s)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError("the crawl hangs")
    said = (topic.parent / "said").read_text(errors="replace")
    return Finished(process.exitcode, said, topic.parent / "out")


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["focused.scrapy_addon.spiders.topic_spider", "scrapy.cmdline", "tests.support.warm"]
    )
    with contextlib.chdir(ROOT):  # where it finds what it shall import
        from multiprocessing.forkserver import ensure_running

        ensure_running()
    return context


def _scrapy(
    arguments: list[str], said: Path, limits: Mapping[int, int | None], folder: Path
) -> None:
    from scrapy.cmdline import execute

    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    for kind, limit in limits.items():
        if limit is not None:
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
    os.chdir(folder)
    sys.argv = arguments
    execute()
