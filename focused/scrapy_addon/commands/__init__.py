"""Scrapy commands for ``COMMANDS_MODULE``."""
