"""Features enter a crawl at its seams: found as entry points, off until their topic uses them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import focused.features
from focused.crawl.features import FeatureParts, join_parts
from focused.crawl.leases import Lease
from focused.crawl.page_parser import EarlyResult
from focused.crawl.stop_conditions import CrawlPacer
from focused.errors import ConfigurationError
from focused.frontier.disk_frontier import Offer
from focused.frontier.queued_link import QueuedLink, link_key
from focused.installed_features import installed_features
from focused.topic import DeepWeb, Revisit, Scope
from focused.web.page import Outcome
from tests.support.crawling import ROOT
from tests.support.packages import install
from tests.support.simulated import Simulation, page, site, topic

HOME = "http://a.test/"
WEB = site(
    page(HOME, "/whale1", "/whale2", text="All about the whale"),
    page(HOME + "whale1", text="A whale is a large animal"),
    page(HOME + "whale2", text="Another whale is a larger animal of the sea"),
)
PLUGIN = '''
from focused.crawl.leases import Lease
from focused.installed_features import Feature

class Visitor:
    """Handles links of another purpose."""

    def __init__(self, core):
        self.core, self.again = core, []

    def prepare(self, offer, now):
        return Lease(offer, "look-again", offer.link.url)

    def settle(self, lease, outcome, now, parsed):
        self.again.append(lease.url)
        pace = self.core.hosts.pace_after(lease.offer, lease.url, outcome, now)
        self.core.state.frontier.settle(lease.offer, pace, now)

def is_on(topic):
    return topic.name == "whales"

def connect(core):
    from focused.crawl.features import FeatureParts

    visitor = Visitor(core)
    return FeatureParts(handlers={"look-again": visitor}, offered=[visitor])

feature = Feature(is_on, connect)
'''


def entry_point(name: str, module: str) -> str:
    return f"[focused.features]\n{name} = {module}:feature\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    installed_features.cache_clear()
    yield folder
    installed_features.cache_clear()


@pytest.fixture
def plugin(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages, "look_again_plugin", PLUGIN, entry_point("look-again", "look_again_plugin"))
    monkeypatch.delitem(sys.modules, "look_again_plugin", raising=False)


def visited(simulation: Simulation) -> object:
    from look_again_plugin import Visitor  # type: ignore[import-not-found]  # installed by the test

    return simulation.crawl.feature(Visitor)


@pytest.mark.usefixtures("plugin")
def test_links_of_its_own_purpose_reach_its_handler_and_not_the_archive(tmp_path):
    simulation = Simulation(topic(tmp_path / "crawl", HOME), WEB)
    key = link_key(f"look again {HOME}")
    link = QueuedLink(key, HOME, "a.test", 1.0, 1.0, purpose="look-again")
    simulation.crawl.frontier.push(link, simulation.now)
    simulation.run()
    found = visited(simulation)
    assert found is not None and found.again == [HOME]  # type: ignore[attr-defined]  # its own
    assert len(simulation.rows) == 3
    simulation.close()


def test_a_link_whose_feature_was_switched_off_is_dropped(tmp_path):
    simulation = Simulation(topic(tmp_path / "crawl", HOME), WEB)
    key = link_key(f"look again {HOME}whale9")
    link = QueuedLink(key, HOME + "whale9", "a.test", 1.0, 1.0, purpose="look-again")
    simulation.crawl.frontier.push(link, simulation.now)
    simulation.run()
    assert HOME + "whale9" not in simulation.rows
    assert simulation.times(HOME + "whale9") == []
    simulation.close()


def test_a_feature_that_cannot_be_imported_is_named_with_its_package(packages):
    install(
        packages,
        "broken_plugin",
        "import no_such_library\n",
        entry_point("broken", "broken_plugin"),
    )
    with pytest.raises(ConfigurationError, match=r"the feature broken of broken_plugin cannot"):
        installed_features()


def test_an_entry_point_that_is_no_feature_is_named(packages):
    install(packages, "wrong_plugin", "feature = 1\n", entry_point("wrong", "wrong_plugin"))
    with pytest.raises(ConfigurationError, match=r"the feature wrong of wrong_plugin: .* is no"):
        installed_features()


class Handler:
    """Handles nothing."""

    def prepare(self, offer: Offer, now: float) -> None: ...

    def settle(self, lease: Lease, outcome: Outcome, now: float, parsed: EarlyResult) -> None: ...


def test_two_features_with_one_purpose_are_refused():
    parts = FeatureParts(handlers={"look-again": Handler()})
    with pytest.raises(ConfigurationError, match="twin, handle 'look-again'"):
        join_parts({"look-again": parts, "twin": parts})


class Pacer(CrawlPacer):
    """Another pacer."""


def test_two_features_that_pace_the_crawl_are_refused():
    parts = FeatureParts(pacer=Pacer())
    with pytest.raises(ConfigurationError, match="of one, other more than one paces"):
        join_parts({"one": parts, "other": parts})


PLAIN = Scope(documents=(), javascript="ignore", spam="ignore")
ON_BY_TOPIC = {
    "documents": {"scope": Scope(documents=("pdf",), javascript="ignore", spam="ignore")},
    "javascript": {"scope": Scope(javascript="report")},
    "revisits": {"revisit": Revisit(continuous=True)},
    "spam": {"scope": Scope(spam="report")},
    "search-forms": {"deep_web": DeepWeb(hosts=("a.test",))},
}


@pytest.mark.parametrize("name", ON_BY_TOPIC)
def test_a_feature_is_on_where_its_topic_uses_it(name, tmp_path):
    off = topic(tmp_path, HOME, scope=PLAIN)
    feature = installed_features()[name]
    assert feature.is_on(topic(tmp_path, HOME, **ON_BY_TOPIC[name]))
    assert not feature.is_on(off)


def test_all_shipped_features_are_tested_here():
    shipped = {
        name
        for name, feature in installed_features().items()
        if any(feature is each for each in vars(focused.features).values())
    }
    assert shipped == set(ON_BY_TOPIC)


OFF = """
import sys
from pathlib import Path
from tests.support.simulated import Simulation, topic
from tests.crawl.test_features import HOME, PLAIN, WEB

Simulation(topic(Path(sys.argv[1]), HOME, scope=PLAIN), WEB).run().close()
names = [name for name in sys.modules if name.startswith("focused.")]
parts = ("revisits.", "focused.revisit.", "crawl.javascript", "crawl.deep_web")
parts += ("focused.spam", "spam_filter", "focused.documents")
print(*[name for name in names if any(part in name for part in parts)])
"""


def test_what_is_off_is_not_imported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", OFF, str(tmp_path)],
        # Others of this process may have set PYTHONSAFEPATH, which leaves out the working folder.
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []
