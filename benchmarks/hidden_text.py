"""How many honest pages hide most of their text.

``python benchmarks/hidden_text.py webs/docweb-medium ...`` reads all pages of recorded webs and
counts those that :mod:`focused.web.html.parse` finds, by site.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from focused.recorded_web.recorded_web import RecordedWeb
from focused.web.decoding import decode, limit_markup
from focused.web.host_names import registered_domain
from focused.web.html.parse import hides_text
from focused.web.urls import host_of


def main() -> None:
    """Print the sites whose pages hide their text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("webs", type=Path, nargs="+")
    for folder in parser.parse_args().webs:
        pages: Counter[str] = Counter()
        hiding: Counter[str] = Counter()
        with RecordedWeb.open(folder) as web:
            for url in web.page_urls:
                response = web.get(url)
                if response is None:
                    continue
                html = decode(response.body, response.headers)[0]
                site = registered_domain(host_of(url))
                pages[site] += 1
                tree = LexborHTMLParser(limit_markup(html), scripting=True)
                hiding[site] += hides_text(html, tree)
        found = ", ".join(f"{site} {count}" for site, count in hiding.most_common() if count)
        print(
            f"{folder}: {hiding.total()} of {pages.total():,} pages hide most text: {found or '–'}"
        )


if __name__ == "__main__":
    main()
