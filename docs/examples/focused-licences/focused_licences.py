"""The Creative Commons licences that pages link to: stored, counted and shown."""

import re
from collections import Counter
from dataclasses import dataclass

from focused.installed_features import ConsoleTab, Feature

_LICENCE = re.compile(r"https?://creativecommons\.org/(?:licenses|publicdomain)/([a-z-]{1,20})/")


@dataclass(frozen=True)
class Licences:
    """The section ``[licences]`` of a topic file."""

    find: bool = False
    follow_deeds: bool = False


def find_licence(page, html):
    """Return the licence of a page, such as ``by-sa``, or None; a page analyser."""
    found = (_LICENCE.match(link.url) for link in page.links)
    return next((match[1] for match in found if match), None)


class LicenceCounts:
    """Counts pages on topic by licence, in a table of the crawl's state."""

    def __init__(self, tables):
        self._tables = tables
        rows = tables.scan("licences")
        self.counts = Counter({key.decode(): int.from_bytes(count, "big") for key, count in rows})

    def on_settled(self, event):
        settled = event.settled
        if settled.classification is None or not settled.classification.on_topic:
            return
        licence = settled.findings["licences"] or "none"
        self.counts[licence] += 1
        self._tables.put("licences", licence.encode(), self.counts[licence].to_bytes(8, "big"))


def is_on(topic):
    """Whether the topic file sets ``licences.find``."""
    return topic.section(Licences).find


def connect(core):
    """Add the analyser, the column, the link filter and the counts to a crawl."""
    from focused.crawl.classified_page import PageColumn
    from focused.crawl.features import FeatureParts

    core.page_analysers["licences"] = find_licence
    core.columns.append(PageColumn("licence", "text", lambda page: page.findings["licences"]))
    if not core.topic.section(Licences).follow_deeds:
        core.link_filter.refusals.append(
            lambda url: "licence deed" if _LICENCE.match(url) else None
        )
    licences = LicenceCounts(core.state.store.tables)
    return FeatureParts(
        listeners=[licences], statistics={"licences": lambda: dict(licences.counts)}
    )


def report(counts):
    """Return the line of the report."""
    pages = sum(counts.values())
    return [("with a licence", f"{pages - counts.get('none', 0):,} of {pages:,} on topic")]


def read_tab(folder):
    """Return the table of the console's tab."""
    import pyarrow.parquet

    from focused.archive.crawl_tables import open_tables

    with open_tables(folder) as tables:
        pages = pyarrow.parquet.read_table(tables / "pages.parquet", columns=["licence", "host"])
    counts = Counter(zip(*pages.to_pydict().values(), strict=True))
    rows = [(licence, host, pages) for (licence, host), pages in counts.most_common() if licence]
    return ("Licence", "Host", "Pages"), rows


feature = Feature(is_on, connect, Licences, report, ConsoleTab("Licences", read_tab))
