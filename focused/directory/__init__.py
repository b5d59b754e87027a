"""Directories of sample pages under categories: readers and the choice of samples.

Readers turn files into :class:`~focused.directory.directory_entry.DirectoryEntry`. Nothing
here fetches a page.
"""
