"""Builders of recorded webs from Debian packages."""
