"""Crawls in processes that are forked from one where everything is imported already.

The same command line, a process of its own, a process's death; but the two
seconds in which Python reads Scrapy and scientific libraries are paid once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.support.crawling import ROOT, command


def start_warm(topic: Path, address: str) -> BaseProcess:
    """Start ``scrapy crawl topic`` as ``tests.support.crawling.start`` does; nobody hears it."""
    process = _server().Process(target=_scrapy, args=(command(topic, address)[2:],))
    process.start()
    return process


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["spiders.topic", "scrapy.cmdline", "tests.support.warm"])
    with contextlib.chdir(ROOT):  # where it finds what it shall import
        from multiprocessing.forkserver import ensure_running

        ensure_running()
    return context


def _scrapy(arguments: list[str]) -> None:
    from scrapy.cmdline import execute

    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(ROOT)
    sys.argv = arguments
    execute()
