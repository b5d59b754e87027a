"""A continuous crawl over pages that change, move, vanish and reappear, on a simulated clock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from focused.topic import Revisit
from focused.web.page import Failed, FailureKind, HttpExchange, Outcome, Redirected
from focused.web.warc_records import format_http_head
from tests.support.simulated import START, Answer, Simulation, page, topic

DAY_S = 86_400.0
HOME = "http://a.test/"
NEWS, LEFT, MOVED, BACK, SHIPS = (
    HOME + name for name in ("news", "left", "moved", "back", "ships")
)
TARGET = "http://b.test/target"
WHALES = " ".join(["whale blubber krill fluke"] * 10)


def after(*versions: tuple[float, Outcome]) -> Callable[[float], Outcome]:
    """What a URL answers from each of these days on; the first is there from the start."""

    def answer(now: float) -> Outcome:
        return [outcome for day, outcome in versions if now >= START + day * DAY_S][-1]

    return answer


def moved_for_good(url: str, target: str) -> Redirected:
    head = format_http_head("HTTP/1.1 301 Moved Permanently", {"Location": target})
    asked = format_http_head("GET / HTTP/1.1", {"Host": "a.test"})
    return Redirected(url, 301, target, exchange=HttpExchange(asked, head, b""))


def gone(url: str) -> Failed:
    return Failed(url, FailureKind.GONE, 410)


def whales(url: str, more: str = "", *links: str, **headers: str) -> Outcome:
    return page(url, *links, text=f"{WHALES} {more}", title=f"Whales {url[-4:]}", **headers)


def changing_web() -> dict[str, Answer]:
    """The home page links to all others; each changes on another day."""
    links = (NEWS, LEFT, MOVED, BACK, SHIPS)
    ships = [page(SHIPS, text=f"ships harbour engine cargo deck {n}", title="Ships") for n in "ab"]
    return {
        HOME: whales(HOME, "home", *links),
        NEWS: after(
            (0, whales(NEWS, "The calf was born.")),
            (6, whales(NEWS, "The calf swims beside its mother in the bay.")),
            (12, whales(NEWS, "Nobody saw the whales again, neither calf nor mother.")),
        ),
        LEFT: after((0, whales(LEFT, "left")), (4, gone(LEFT))),
        MOVED: after((0, whales(MOVED, "moved")), (5, moved_for_good(MOVED, TARGET))),
        BACK: after((0, whales(BACK, "back")), (3, gone(BACK)), (9, whales(BACK, "back again"))),
        SHIPS: after((0, ships[0]), (7, page(SHIPS, text="engine deck crew mast anchor sails"))),
        TARGET: whales(TARGET, "target of the page that moved"),
    }


def continuous_crawl(
    folder: Path, web: dict[str, Answer], days: float = 14.0, **settings: Any
) -> Simulation:
    """Crawl ``web`` from its home page for so many days, and close the folder."""
    limits = {"pages_per_day": 14, "max_interval_days": 2.0, **settings}
    revisit = Revisit(continuous=True, hours=days * 24, **limits)
    simulation = Simulation(topic(folder, HOME, revisit=revisit), web).run(20_000)
    simulation.close()
    return simulation
