"""Scrapy settings for the spiders of this package; the add-on does the rest."""

BOT_NAME = "focused"
SPIDER_MODULES = ["focused.scrapy_addon.spiders"]
NEWSPIDER_MODULE = "focused.scrapy_addon.spiders"
ADDONS = {"focused.scrapy_addon.FocusedAddon": 0}
COMMANDS_MODULE = "focused.scrapy_addon.commands"  # crawl: its exit status tells of trouble
TELNETCONSOLE_ENABLED = False
FEED_EXPORT_ENCODING = "utf-8"
# The topic spider logs to its crawl's folder, at FOCUSED_LOG_LEVEL; the terminal has the progress.
LOG_LEVEL = "WARNING"
