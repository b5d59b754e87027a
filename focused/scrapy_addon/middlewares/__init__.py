"""Downloader and spider middlewares of the add-on."""
