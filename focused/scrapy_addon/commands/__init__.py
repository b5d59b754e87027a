"""Scrapy commands of this package, for a project's ``COMMANDS_MODULE``."""
