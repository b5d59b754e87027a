"""A model and what belongs to it: made together, and put in office together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from focused.errors import ModelError
from focused.labels.label import Label
from focused.learning.documents import page_words
from focused.learning.model_store import noted_urls, save_model
from focused.learning.report import TrainedModel
from focused.learning.samples import FetchPage, Remark, identity_of
from focused.learning.training import train_topic
from focused.topic import Topic
from focused.web.page import Page
from focused.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class Made:
    """A model, and the URLs of the pages that it learned from as they answered.

    ``texts`` tells the same pages by their words: see :meth:`knows`.
    """

    model: TrainedModel
    learned_from: frozenset[str]
    texts: frozenset[bytes] = frozenset()

    def knows(self, page: Page) -> bool:
        """Whether it learned from this page, at this address or word for word at another."""
        return page.url in self.learned_from or identity_of(page_words(page)) in self.texts


def make_model(
    topic: Topic,
    fetch_page: FetchPage,
    *,
    now: float,
    labels: Sequence[Label] = (),
    remark: Remark | None = None,
) -> Made:
    """Train the topic's model and note what it learned from; see :func:`train_topic`."""
    learned_from: set[str] = set()
    texts: set[bytes] = set()

    def fetch_and_note(url: str) -> Page | None:
        page = fetch_page(url)
        if page is not None:
            learned_from.add(page.url)
            texts.add(identity_of(page_words(page)))
        return page

    model = train_topic(topic, fetch_and_note, now=now, labels=labels, remark=remark)
    return Made(model, frozenset(learned_from), frozenset(texts))


def install(made: Made, path: Path) -> Path:
    """Write the model, its card and the list of URLs; return the card's path.

    The model last: a crawl that runs takes it over as soon as it is there.
    Raises :class:`ModelError` when they cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        urls = "".join(f"{url}\n" for url in sorted(made.learned_from))
        write_whole(noted_urls(path), urls.encode())
    except OSError as error:
        raise ModelError(f"training.model: cannot write beside {path}: {error.strerror}") from error
    return save_model(made.model, path)
