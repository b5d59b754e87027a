"""What a directory says: sample pages under categories.

Readers turn files into :class:`~focused.directory.directory_entry.DirectoryEntry`;
``reading`` chooses among them; ``sides`` tells which samples are the topic.
Nothing here fetches a page or learns from one.
"""
