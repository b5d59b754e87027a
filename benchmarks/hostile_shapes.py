"""Search for markup that makes the HTML parser slow: each element, then pairs of elements.

    python benchmarks/hostile_shapes.py [--tags 40000] [--from-s 0.12] [singles|pairs]

Each shape is one piece of markup repeated to that many tags, limited as before parsing
(:func:`focused.web.decoding.limit_markup`). Prints the parser's CPU seconds for shapes from
``--from-s`` on, and those for a quarter of the tags: four times as much is linear.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

from focused.web.decoding import limit_markup

ELEMENTS = """
a address applet area article b base bgsound big blockquote body br button caption center code col
colgroup datalist dd details dialog dir div dl dt em embed fieldset figure font form frame
frameset h1 h2 head header hr html i iframe image img input ins isindex keygen label legend li
link listing main marquee math menu menuitem meta nobr noembed noframes noscript object ol
optgroup option output p param picture plaintext pre q rb rp rt rtc ruby s script search section
select selectedcontent slot small source span strike style sub summary svg table tbody td template
textarea tfoot th thead title tr track tt u ul var video wbr xmp foreignObject desc mi mtext
annotation-xml mglyph malignmark x-y
"""
CONTEXTS = (
    "",
    "<select>",
    "<table>",
    "<template>",
    "<svg>",
    "<math>",
    "<button>",
    "<a href=x>",
    "<svg><foreignObject>",
    "<table><tr><td>",
    "<ruby>",
    "<select><button>",
    "<table><select>",
)
PAIRED = """
a b nobr font button p li dd dt div span table tr td th tbody caption colgroup select option
optgroup form input h1 pre ruby rt rp rtc rb template svg math mi foreignObject object applet body
html head frameset title script hr br textarea ul address
"""


def singles() -> Iterator[tuple[str, str]]:
    """Each element left open, with text, closed, closed alone and self-closed, in each context."""
    for context, name in itertools.product(CONTEXTS, ELEMENTS.split()):
        for piece in ("<{}>", "<{} href=x>y", "<{0}>x</{0}>", "</{}>", "<{}/>"):
            yield context, piece.format(name)


def pairs() -> Iterator[tuple[str, str]]:
    """Two elements in each other: left open, misnested, one of them closed."""
    for outer, inner in itertools.permutations(PAIRED.split(), 2):
        for piece in ("<{0}><{1}>", "<{0}><{1}></{0}>", "<{0}></{1}>", "<{0}><{1}></{0}></{1}>"):
            yield "", piece.format(outer, inner)


def parse_s(context: str, piece: str, tags: int) -> float:
    """Seconds of CPU for a page of so many tags."""
    html = limit_markup(context + piece * (tags // piece.count("<")))
    began = time.process_time()
    LexborHTMLParser(html, scripting=True)
    return time.process_time() - began


def main() -> None:
    """Print what is slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="?", choices=("singles", "pairs"), default="singles")
    parser.add_argument("--tags", type=int, default=40_000)
    parser.add_argument("--from-s", type=float, default=0.12)
    options = parser.parse_args()
    print("| in | repeated | s | s for a quarter |\n|---|---|---|---|")
    for context, piece in singles() if options.shapes == "singles" else pairs():
        took_s = parse_s(context, piece, options.tags)
        if took_s >= options.from_s:
            quarter_s = parse_s(context, piece, options.tags // 4)
            print(f"| `{context}` | `{piece}` | {took_s:.2f} | {quarter_s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
