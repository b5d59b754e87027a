"""What people said of pages.

A :class:`~focused.labels.label.Label` is one person's word on one page; a
:class:`~focused.labels.label_file.LabelFile` keeps them, line by line, in a plain file
that is only ever appended to. Each label has a role: pages drawn at random classifier
models and never teach one; pages chosen because they help teach
(:mod:`focused.labels.label`). Which pages are drawn is settled by the hash of their
URL, so that a page is always the one or the other.
"""
