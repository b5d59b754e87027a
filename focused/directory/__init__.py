"""Directories of sample pages under categories: readers and the choice of samples.

Readers turn files into :class:`~focused.directory.directory_entry.DirectoryEntry`. Nothing
here fetches a page.
"""

from __future__ import annotations


def is_in_category(category: str, prefix: str) -> bool:
    """Whether ``category`` is ``prefix`` or below it (whole path parts only)."""
    prefix = prefix.strip("/")
    return category == prefix or category.startswith(prefix + "/")
