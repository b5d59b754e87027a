"""The documentation's example of custom estimators, in a real crawl."""

from pathlib import Path

import pandas as pd

from tests.support.crawling import ROOT, command, write_topic
from tests.support.forked import run_forked
from tests.support.recorded_web import MemoryWeb, Served, html, page, served

EXAMPLE = ROOT / "docs/examples/library"
SEED = "http://a.test/"


def web() -> MemoryWeb:
    """Whales lead to whales and trade to trade; trade stands first on every page."""
    both = [f"/{kind}-{n}" for kind in ("trade", "whale") for n in range(12)]
    pages = [page(SEED, html("Harbour", *both, text="whale watching and trade in a harbour"))]
    for kind, text in (
        ("trade", "the harbour trades grain, tin and timber with other ports, number"),
        ("whale", "a whale swims in the sea with other whales of its kind, number"),
    ):
        for n in range(12):
            onward = [f"/{kind}-more-{n}"]
            pages.append(page(f"{SEED}{kind}-{n}", html(kind, *onward, text=f"{text} {n}")))
            pages.append(page(f"{SEED}{kind}-more-{n}", html(kind, text=f"{text} 1{n} and more")))
    return MemoryWeb(*pages)


def topic_file(folder: Path) -> Path:
    path = write_topic(folder, SEED, politeness="concurrency = 1")
    whales = [f"Top/Whales\thttp://s.test/w{n}\twhale {n}\ta whale in the sea" for n in range(8)]
    trade = [f"Top/Other\thttp://s.test/t{n}\ttrade {n}\ttrade in tin" for n in range(8)]
    (folder / "directory.tsv").write_text("\n".join([*whales, *trade]) + "\n")
    return path


def crawl(topic: Path, site: Served, **settings: str) -> pd.DataFrame:
    arguments = command(topic, site.address, FOCUSED_MODELS="own_estimators.guide", **settings)[2:]
    done = run_forked(
        arguments,
        folder=topic.parent,
        environment={
            "PYTHONPATH": f"{ROOT}:{EXAMPLE}",
            "SCRAPY_SETTINGS_MODULE": "spiders.settings",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    policy = settings.get("FOCUSED_POLICY")
    return pd.read_parquet(topic.parent / (f"out-{policy}" if policy else "out") / "pages.parquet")


def kinds(pages: pd.DataFrame) -> list[str]:
    """Whale or trade, page by page in the order of fetching."""
    fetched = pages[(pages["outcome"] == "fetched") & (pages["url"] != SEED)]
    return ["whale" if "whale" in url else "trade" for url in fetched["url"]]


def test_a_classifier_of_its_own_guides_a_crawl(tmp_path):
    topic = topic_file(tmp_path)
    with served(web()) as site:
        pages = crawl(topic, site)
    assert kinds(pages) == ["whale"] * 24 + ["trade"] * 24
    classified = pages.set_index("url")["on_topic"]
    assert classified[f"{SEED}whale-3"]
    assert not classified[f"{SEED}trade-3"]


def test_a_scorer_of_its_own_learns_from_an_earlier_crawl(tmp_path):
    topic = topic_file(tmp_path)
    with served(web()) as site:
        crawl(topic, site)
        pages = crawl(topic, site, FOCUSED_POLICY="own_estimators.policy")
    assert kinds(pages) == ["whale"] * 24 + ["trade"] * 24
    found = pages[pages["parent"].notna()]
    assert {name for features in found["features"] for name, _ in features} == {"anchor", "parent"}
    scores = found.set_index("url")["score"]
    assert scores[f"{SEED}whale-1"] > 0.5 > scores[f"{SEED}trade-1"]
