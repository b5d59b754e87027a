"""Pages as data: pure functions without network access or state.

The input is bytes and headers; the output is a :class:`~focused.web.page.Page` with text, title,
links with anchors and context, and robots directives. All URLs that leave this package are
absolute, normalised, http or https, and have no fragment. Nothing here raises for what a server
sent: a bad page is a :class:`~focused.web.page.Failed`.
"""
