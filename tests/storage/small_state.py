"""The crawl of the kept state folders: each format's is made by the last version that wrote it.

To make two, of a crawl and of a continuous one, run this file with that version: ``python -m
tests.storage.small_state FOLDER``.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from focused.link_scoring.apprentice import Apprentice
from focused.topic import Revisit, Topic
from tests.support.prose import prose_pages
from tests.support.simulated import Answer, Simulation, page, raw, site, topic
from tests.support.whale_models import WhaleClassifier

HOSTS = tuple(f"http://{name}.test/" for name in "abcd")
PAGES_A_HOST = 20
KILLED_AFTER_PAGES = 60
SHELL = '<div id="root"></div><script type="module" src="/app.js"></script>'


def small_web() -> Mapping[str, Answer]:
    """Four hosts whose pages link to the next page of each; two of a host are empty."""
    texts = prose_pages()
    pages = []
    for number, host in enumerate(HOSTS):
        shells = [f"{host}{name}" for name in ("app", "whale-app")]
        pages.append(page(host, *(f"{other}0" for other in HOSTS), *shells, text="whale"))
        pages += [raw(shell, SHELL) for shell in shells]
        for at in range(PAGES_A_HOST):
            links = [f"{other}{at + 1}" for other in HOSTS if at + 1 < PAGES_A_HOST]
            text = f"whale {number} {at} {texts[(at * len(HOSTS) + number) % len(texts)].text}"
            pages.append(page(f"{host}{at}", *links, text=text))
    return site(*pages)


def small_topic(folder: Path) -> Topic:
    """The topic whose crawl goes to ``folder/out``."""
    subject = topic(folder, HOSTS[0])
    scope = replace(subject.scope, javascript="report")
    return replace(subject, scope=scope)


def small_collection(folder: Path) -> Topic:
    """The same topic, whose pages are visited again."""
    revisit = Revisit(continuous=True, hours=24 * 400, pages_per_day=40)
    return replace(small_topic(folder), revisit=revisit)


def small_apprentice() -> Apprentice:
    """What scores the links."""
    return Apprentice(WhaleClassifier())


def make_state(topic: Topic) -> None:
    """Crawl until the process dies, with commits that are in the journal alone."""
    crawl = Simulation(topic, small_web(), scorer=small_apprentice())
    crawl.run(pages=KILLED_AFTER_PAGES - 15)
    crawl.store.freeze().close()
    crawl.run(pages=KILLED_AFTER_PAGES)
    crawl.store.sync()
    crawl.store.abandon()
    crawl.crawl.archive.close()


if __name__ == "__main__":
    make_state(small_topic(Path(sys.argv[1]) / "crawl"))
    make_state(small_collection(Path(sys.argv[1]) / "collection"))
