"""A made-up web of cheese pages among garden pages, with its directory and topic."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.topic import Output, Politeness, Seeds, Topic, Training
from focused.web.page import Page

_CHEESE = "cheese rind curd rennet brie cheddar dairy milk ripening whey gouda ferment"
_GARDEN = "garden soil seed compost prune hedge tulip lawn spade mulch orchard weed"
_COMMON = "the and page home about contact search with from this that more news you our year"
CHEESE, GARDEN, COMMON = _CHEESE.split(), _GARDEN.split(), _COMMON.split()


def page(kind: str, number: int, *, hosts: int = 6, length: int = 120) -> Page:
    """Page ``number`` of a kind (cheese or garden); the same number gives the same page."""
    rng = random.Random(f"{kind} {number}")
    host = f"{kind}{number % hosts}.example"
    ours, theirs = (CHEESE, GARDEN) if kind == "cheese" else (GARDEN, CHEESE)
    own = [f"{kind}host{'abcdefgh'[number % hosts]}"]
    text = rng.choices(COMMON * 3 + ours + theirs[:3] + own, k=length)
    title = " ".join(rng.choices(ours, k=2) + rng.choices(COMMON, k=2))
    return Page(f"https://{host}/{kind}/{number}", title=title, text=" ".join(text))


def web(cheese: int = 30, garden: int = 90, hosts: int = 6) -> dict[str, Page]:
    pages = [page("cheese", n, hosts=hosts) for n in range(cheese)]
    pages += [page("garden", n, hosts=hosts) for n in range(garden)]
    return {one.url: one for one in pages}


def write_directory(path: Path, pages: dict[str, Page]) -> Path:
    lines = [
        "\t".join((f"Top/{'Food/Cheese' if 'cheese' in url else 'Home/Garden'}", url, one.title))
        for url, one in pages.items()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def topic(folder: Path, pages: dict[str, Page], **training) -> Topic:
    """The topic of cheese, its directory written into ``folder``."""
    directory = write_directory(folder / "directory.tsv", pages)
    model = folder / "models" / "cheese.joblib"
    chosen = Training((directory,), ("Top/Food",), model, background=False)
    return Topic(
        name="cheese",
        path=folder / "cheese.toml",
        seeds=Seeds(()),
        training=replace(chosen, **training),
        politeness=Politeness("test (+https://example.org/)"),
        output=Output(folder / "crawl"),
    )


def trained(
    folder: Path,
    pages: dict[str, Page] | None = None,
    estimator: str = "",
    wish: dict[str, float] | None = None,
    **options,
) -> TrainedModel:
    pages = web() if pages is None else pages
    training = {**({"estimator": estimator} if estimator else {}), **(wish or {})}
    return train_topic(topic(folder, pages, **training), pages.get, now=1_700_000_000.0, **options)
