"""People's labels of pages.

A :class:`~focused.labels.label_file.Label` is one person's answer for one page; a
:class:`~focused.labels.label_file.LabelFile` is an append-only file of labels. Each label
has a role: labels of randomly drawn pages evaluate models and never train one; labels of
selected pages train. The hash of the URL decides the role.
"""
