"""What a URL alone tells of a trap: paths and queries that grow for ever.

Traps are mostly accidents: a relative link that was meant to be absolute, a
filter that adds itself to the address of each page. What they make grows from
link to link, and is told by its shape once it is long enough. The bounds are
wide: a page that is refused here is one that no reader would find either. The
first is Heritrix's PathologicalPathDecideRule, the second its
TooManyPathSegmentsDecideRule, widened. What only a host's history tells is in
:mod:`focused.crawl.traps`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MAX_SEGMENTS = 20
MAX_PARAMETERS = 20
TIMES_IN_A_ROW = 3
TIMES_IN_A_PATH = 5
TIMES_IN_A_QUERY = 3

KIND = "trap: "
"""How every reason begins."""
REPEATED_SEGMENTS = "trap: repeated segments"
DEEP_PATH = "trap: endless path"
MANY_PARAMETERS = "trap: too many parameters"
REPEATED_PARAMETERS = "trap: repeated parameters"
NESTED_ESCAPES = "trap: escaped again and again"

_SHORTEST_REPETITION = 4
_IN_A_ROW = re.compile(rf"/((?:[^/]+/){{1,4}}?)\1{{{TIMES_IN_A_ROW - 1},}}")
_NUMBERS = re.compile(r"(?:\d+/)+")
_ESCAPED_THRICE = "%252525"


def trap_in(url: str) -> str | None:
    """Why a normalised URL looks like one of endlessly many, or None.

    - ``"trap: repeated segments"``: one to four folders, not all of them numbers,
      three times in a row, or one folder five times anywhere;
    - ``"trap: endless path"``: more than 20 segments;
    - ``"trap: too many parameters"``: more than 20;
    - ``"trap: repeated parameters"``: one with the same value three times;
    - ``"trap: escaped again and again"``: an address in an address in an address.
    """
    if _ESCAPED_THRICE in url:
        return NESTED_ESCAPES
    head, _, query = url.partition("?")
    if query and (reason := _in_query(query)) is not None:
        return reason
    slashes = head.count("/") - 2
    if slashes > MAX_SEGMENTS:
        return DEEP_PATH
    if slashes < _SHORTEST_REPETITION:
        return None
    return REPEATED_SEGMENTS if _repeats(head[head.index("/", 8) :]) else None


def _in_query(query: str) -> str | None:
    parameters = [part for part in query.split("&") if part]
    if len(parameters) > MAX_PARAMETERS:
        return MANY_PARAMETERS
    return REPEATED_PARAMETERS if _most(parameters) >= TIMES_IN_A_QUERY else None


def _repeats(path: str) -> bool:
    folders = path.split("/")[1:-1]
    if len(folders) - len(set(folders)) < TIMES_IN_A_ROW - 1:  # most paths are done with here
        return False
    most = _most([each for each in folders if each and not each.isdigit()])
    if most >= TIMES_IN_A_PATH:
        return True
    # What stands three times in a row stands there three times.
    if most < TIMES_IN_A_ROW:
        return False
    return any(not _NUMBERS.fullmatch(found[1]) for found in _IN_A_ROW.finditer(path))


def _most(parts: Sequence[str]) -> int:
    """How often the most frequent part occurs."""
    if len(set(parts)) == len(parts):
        return min(len(parts), 1)
    return max(Counter(parts).values())
