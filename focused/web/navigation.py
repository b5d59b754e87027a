"""Which elements are for getting about in a site, by their own account.

Says so: the elements nav, header, footer and aside, some ARIA landmark and
widget roles, and class and id names of which the last word is one of a few
(``nav``, ``main-nav``, ``site_footer``, but neither ``nav-content`` nor
``grid-for-nav``). Nothing is guessed from layout or from the number of links.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

NAVIGATION_TAGS = frozenset({"nav", "header", "footer", "aside"})
NAVIGATION_ROLES = frozenset({"navigation", "menu", "menubar", "banner", "contentinfo"})
# fmt: off
NAVIGATION_WORDS = frozenset({
    "banner", "breadcrumb", "breadcrumbs", "crumbs", "footer", "header", "masthead", "menu",
    "menubar", "nav", "navbar", "navfooter", "navheader", "navigation", "navpath", "pager",
    "pagination", "related", "sidebar", "sidenav", "sphinxsidebar", "subnav", "toc", "topbar",
    "topnav",
})
# fmt: on
# ``has-sidebar`` and ``grid-for-nav`` tell of the page, not of what they stand at.
_TELLING_OF_OTHERS = frozenset({"for", "has", "hide", "no", "show", "with", "without"})
_MAX_NAME_CHARS = 200
_REMEMBERED = 4_096


def is_navigation(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Tell whether an element says that it is navigation; pages' own wrappers never do.

    The first 200 characters each of its class and id are read.
    """
    if tag in NAVIGATION_TAGS:
        return True
    if not attributes or tag in ("html", "body"):
        return False
    role = attributes.get("role")
    if role and role.strip().lower() in NAVIGATION_ROLES:
        return True
    classes, name = attributes.get("class"), attributes.get("id")
    return bool(
        (classes and _is_named_so(classes[:_MAX_NAME_CHARS]))
        or (name and _is_named_so(name[:_MAX_NAME_CHARS]))
    )


@lru_cache(_REMEMBERED)
def _is_named_so(names: str) -> bool:
    for name in names.lower().replace("_", "-").split():
        if name.rpartition("-")[2] in NAVIGATION_WORDS and _TELLING_OF_OTHERS.isdisjoint(
            name.split("-")
        ):
            return True
    return False
