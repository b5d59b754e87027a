"""What the sitemaps and feeds of a changing web state, as lists for the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from focused_lab.changing_web.change_options import ChangeOptions, host_behaviour, is_announced
from focused_lab.changing_web.changed_content import MAX_ENTRIES
from focused_lab.freshness.change_history import ChangeKind, PageChanges, SiteChanges
from focused_lab.freshness.sitemaps import SiteList, Statement
from focused_lab.freshness.windows import Window

_Lives = Mapping[tuple[str, float], int]


def announced_lists(
    window: Window, truth: Sequence[SiteChanges], options: ChangeOptions
) -> dict[tuple[str, str], SiteList]:
    """Return the lists of a changing web by host and kind, ``sitemap`` or ``feed``.

    ``window`` is one of the true histories from the start of the options; lists name its pages.
    """
    lives = {(life.name, life.created_at): number for number, life in enumerate(window.pages)}
    sites = {host: site for site, host in enumerate(window.sites)}
    found = {}
    for history in truth:
        behaviour = host_behaviour(history.site, options)
        statements = sorted(
            (
                statement
                for page in history.pages
                for statement in _statements(page, lives, behaviour.announced, options)
            ),
            key=itemgetter(0),
        )
        pages = len({each.page for each in statements})
        site = sites[history.site]
        if behaviour.has_sitemap and statements:
            found[history.site, "sitemap"] = SiteList(site, pages, statements)
        if behaviour.has_feed and statements:
            new = (each for each in statements if each.changed_at is None or each.changed_at > 0)
            latest = list(_latest(new))
            found[history.site, "feed"] = SiteList(
                site, min(pages, MAX_ENTRIES), latest, is_complete=False
            )
    return found


def _statements(
    page: PageChanges, lives: _Lives, share: float, options: ChangeOptions
) -> Iterator[Statement]:
    """Yield what a complete list states of a page, in seconds since the start."""
    stated: float | None = None
    life: int | None = None
    number = 0
    for change in page.changes:
        at = change.at - options.start
        if at <= 0:
            stated, announced = 0.0, True
        else:
            announced = is_announced(page.page, number, share, options.seed)
            number += 1
        if announced:
            stated = max(at, 0.0)
        if change.kind is ChangeKind.CREATED:
            life = lives.get((page.page, max(at, 0.0)))
        if life is None:
            continue
        if change.kind is ChangeKind.DELETED:
            yield Statement(at, life, None)
        elif stated is not None and (announced or change.kind is ChangeKind.CREATED):
            yield Statement(max(at, 0.0), life, stated)


def _latest(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements of a list that names only the latest changes."""
    named: dict[int, float] = {}
    for each in statements:
        if each.changed_at is None:
            if named.pop(each.page, None) is not None:
                yield each
            continue
        named.pop(each.page, None)
        named[each.page] = each.changed_at
        yield each
        if len(named) > MAX_ENTRIES:
            oldest = next(iter(named))
            del named[oldest]
            yield Statement(each.at, oldest, None)
