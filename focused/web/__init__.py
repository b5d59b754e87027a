"""Pages as data: no network, no state.

Bytes and headers come in, a :class:`~focused.web.page.Page` goes out: text,
title, links with their anchors and surroundings, what the page says about
robots. URLs that leave this package are absolute, WHATWG-normalised, http or
https, without fragment. Nothing here raises for what a server sent: a bad
page is a :class:`~focused.web.page.Failed`.
"""
