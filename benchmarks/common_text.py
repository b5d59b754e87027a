"""Honest pages that have much text in common with pages of other sites.

``python benchmarks/common_text.py WEB...`` reads the pages of recorded webs in random order, as a
crawl would that finds all of them on topic, and counts for each site: its pages, its duplicates of
other sites' pages, its other pages half of which are on another site (or the other way round), and
how many sites these have text in common with. A scraper has it with many, on many of its pages.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from focused.crawl.dedup.duplicates import NearDuplicateIndex
from focused.recorded_web.recorded_web import RecordedWeb, page_reader
from focused.storage.state_store import StateStore
from focused.text.content_signatures import shingles
from focused.web.content_hash import content_fingerprint
from focused.web.host_names import registered_domain
from focused.web.urls import host_of


def main() -> None:
    """Print a line for each site with common text, those with most sites first, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("web", nargs="+", type=Path)
    options = parser.parse_args()
    pages, copies, common = Counter[str](), Counter[str](), Counter[str]()
    others: defaultdict[str, set[str]] = defaultdict(set)
    for folder in options.web:
        with RecordedWeb.open(folder) as web, tempfile.TemporaryDirectory() as state:
            store = StateStore.open(Path(state) / "state", {}, commit_every=1_000)
            index, read, seen = NearDuplicateIndex(store.tables), page_reader(web), set()
            urls = sorted(web.page_urls)
            random.Random(0).shuffle(urls)
            for url in urls:
                page = read(url)
                if page is None or (content := content_fingerprint(page)) in seen:
                    continue
                seen.add(content)
                site = registered_domain(host_of(url))
                pages[site] += 1
                sketch = index.page_sketch(page, shingles(page.text))
                share, original, least = index.nearest(sketch)
                if share >= least:
                    copies[site] += registered_domain(host_of(original)) != site
                    continue
                found = index.common_text(sketch)
                common[site] += bool(found)
                others[site].update(registered_domain(host_of(each)) for each in found)
                index.add(sketch)
            store.close()
    print("pages  duplicates  common text  with sites")
    for site in sorted(common, key=lambda each: (-len(others[each]), -common[each])):
        if common[site]:
            counts = f"{pages[site]:5} {copies[site]:11} {common[site]:12}"
            print(f"{counts} {len(others[site]):11}  {site}")
    share = common.total() / max(1, pages.total())
    print(f"{len(pages)} sites, {pages.total():,} pages: {share:.2%} have common text")


if __name__ == "__main__":
    main()
