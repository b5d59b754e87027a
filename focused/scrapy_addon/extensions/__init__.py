"""Scrapy extensions of the add-on."""
