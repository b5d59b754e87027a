"""A made-up web of cheese pages among garden pages, with its directory and topic."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.topic import Output, Politeness, Seeds, Topic, Training
from focused.web.page import Page
from focused_lab.recorded_web.replay_process import ReplayProcess
from focused_lab.recorded_web.web_import import import_html
from tests.support.recorded_web import html

_CHEESE = "cheese rind curd rennet brie cheddar dairy milk ripening whey gouda ferment"
_GARDEN = "garden soil seed compost prune hedge tulip lawn spade mulch orchard weed"
_COMMON = "the and page home about contact search with from this that more news you our year"
CHEESE, GARDEN, COMMON = _CHEESE.split(), _GARDEN.split(), _COMMON.split()


BASE = "http://food.test/"


def topic_text(seed: str = BASE, delay_s: float = 0.0) -> str:
    """The topic file of cheese."""
    return f"""
name = "cheese"
[seeds]
urls = ["{seed}"]
[training]
directory = ["directory.tsv"]
good = ["Top/Food"]
model = "models/cheese.joblib"
[politeness]
user_agent = "FocusedTest/0.1 (+http://example.org/bot)"
delay_s = {delay_s}
[output]
folder = "out"
"""


TOPIC = topic_text()


def words(kind: str, number: int) -> str:
    """The text of a page of a kind (cheese or garden)."""
    rng = random.Random(f"{kind} {number}")
    own = CHEESE if kind == "cheese" else GARDEN
    return " ".join(rng.choices(COMMON * 2 + own * 2, k=100))


def write_site(folder: Path) -> None:
    """Forty pages, every other of them a sample; the front page links to all."""
    names = [(kind, number) for kind in ("cheese", "garden") for number in range(20)]
    folder.mkdir()
    links = [f"{kind}{number}.html" for kind, number in names]
    (folder / "index.html").write_bytes(html("Welcome", *links))
    for kind, number in names:
        body = html(f"{kind} {number}", "index.html", text=words(kind, number))
        (folder / f"{kind}{number}.html").write_bytes(body)
    lines = [
        f"Top/{'Food' if kind == 'cheese' else 'Home'}\t{BASE}{kind}{number}.html\tA page"
        for kind, number in names
        if number % 2
    ]
    (folder.parent / "directory.tsv").write_text("\n".join(lines) + "\n")
    (folder.parent / "cheese.toml").write_text(TOPIC)


@contextmanager
def served_site(folder: Path) -> Iterator[str]:
    """The site, its directory and topic in ``folder``; gives the address of its replay."""
    write_site(folder / "site")
    import_html(folder / "site", BASE, folder / "web", "web")
    with ReplayProcess(folder / "web") as replay:
        yield replay.address


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
