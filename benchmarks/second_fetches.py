"""How many pages of two versions of a documentation share so little text that they look cloaked.

``python benchmarks/second_fetches.py OLD NEW`` compares the pages with the same path in two folders
of HTML files, as in the packages llvm-15-doc and llvm-16-doc of Debian. Months lie between them, so
the result is above what two visits of one crawl see; and a page counts as another only if it is off
topic, too, which is not asked here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from focused.crawl.second_fetches import MIN_SHINGLES, is_other_text
from focused.text.content_signatures import Sketch, make_sketch, shingles
from focused.web.html.parse import parse_page
from focused.web.page import Failed, Fetched


def main() -> None:
    """Print the number of pages, of changed ones, and of those with another text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    compared = changed = 0
    others = []
    for file in sorted(options.old.rglob("*.html")):
        path = file.relative_to(options.old)
        first = _sketch(file)
        second = _sketch(options.new / path)
        if first is None or second is None or len(first.hashes) < MIN_SHINGLES:
            continue
        compared += 1
        changed += first.hashes.tobytes() != second.hashes.tobytes()
        if is_other_text(first, second):
            others.append(str(path))
    print(f"{compared:,} pages, {changed:,} changed, {len(others):,} with another text")
    print(*others, sep="\n")


def _sketch(file: Path) -> Sketch | None:
    if not file.is_file():
        return None
    headers = {"content-type": "text/html"}
    page = parse_page(Fetched("http://docs.test/page", 200, headers, file.read_bytes()))
    return None if isinstance(page, Failed) else make_sketch(shingles(page.text))


if __name__ == "__main__":
    main()
