"""``scrapy crawl`` whose exit status says whether the crawl ended in order.

Scrapy's own is 0 for every crawl that began. Switched on by
``COMMANDS_MODULE = "focused.scrapy_addon.commands"`` in a project's settings.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, ClassVar, cast

from scrapy.commands.crawl import Command as ScrapysCommand

from focused.errors import escape_control_characters
from focused.scrapy_addon.crawl_session import crawl_error_of


class Command(ScrapysCommand):
    """Run a spider; the status is 1 when its crawl did not end in order."""

    default_settings: ClassVar[dict[str, Any]] = {"FOCUSED_OWNS_PROCESS": True}

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the spider of that name to its end."""
        if len(args) != 1 or self.crawler_process is None:
            super().run(args, opts)  # says what is wrong
            return
        spiders = self.crawler_process.spider_loader.list()
        if args[0] not in spiders:
            told = f"there is no spider {args[0]!r}; there are {', '.join(sorted(spiders))}"
            print(f"focused: {escape_control_characters(told)}", file=sys.stderr)
            self.exitcode = 2
            return
        crawler = self.crawler_process.create_crawler(args[0])
        # Scrapy takes a crawler wherever it takes a spider's name; its annotation does not say so.
        super().run([cast(str, crawler)], opts)
        if crawl_error_of(crawler):
            self.exitcode = 1
