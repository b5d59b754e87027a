"""``scrapy crawl`` with exit status 1 for a failed crawl; Scrapy's own status is 0.

Enabled by ``COMMANDS_MODULE = "focused.scrapy_addon.commands"`` in a project's settings.
"""

from __future__ import annotations

import argparse
from typing import Any, ClassVar, cast

from scrapy.commands.crawl import Command as ScrapysCommand

from focused.errors import print_notice
from focused.scrapy_addon.crawl_session import crawl_error_of


class Command(ScrapysCommand):
    """Run a spider; the exit status is 1 if its crawl failed."""

    default_settings: ClassVar[dict[str, Any]] = {"FOCUSED_OWNS_PROCESS": True}

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the named spider."""
        if len(args) != 1 or self.crawler_process is None:
            super().run(args, opts)  # reports the error
            return
        spiders = self.crawler_process.spider_loader.list()
        if args[0] not in spiders:
            names = ", ".join(sorted(spiders))
            print_notice(f"there is no spider {args[0]!r}; there are {names}")
            self.exitcode = 2
            return
        crawler = self.crawler_process.create_crawler(args[0])
        # Scrapy accepts a crawler in place of a name, against its annotation.
        super().run([cast(str, crawler)], opts)
        if crawl_error_of(crawler):
            self.exitcode = 1
