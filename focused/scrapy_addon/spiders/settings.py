"""Scrapy settings for the spiders of this package."""

BOT_NAME = "focused"
SPIDER_MODULES = [
    "focused.scrapy_addon.spiders.samples_spider",
    "focused.scrapy_addon.spiders.topic_spider",
]
NEWSPIDER_MODULE = "focused.scrapy_addon.spiders"
ADDONS = {"focused.scrapy_addon.FocusedAddon": 0}
COMMANDS_MODULE = "focused.scrapy_addon.commands"  # crawl with an exit status
TELNETCONSOLE_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
# The topic spider logs to its crawl's folder; the terminal shows the progress.
LOG_LEVEL = "WARNING"
