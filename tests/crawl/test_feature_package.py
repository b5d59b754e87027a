"""The example of a feature in a package of its own, ``docs/examples/focused-licences``."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from focused.archive.parquet import write_parquet_files
from focused.console.server import ConsoleServer
from focused.crawl.page_parser import ParsedPage, ParsingHandler, decode_reply, encode_request
from focused.errors import ConfigurationError
from focused.installed_features import installed_features
from focused.local_server import TOKEN_HEADER
from focused.reports.report_output import print_report
from focused.topic import Topic, topic_to_json
from focused.topic.topic_file import load_topic
from tests.support.crawling import ROOT
from tests.support.label_pages import Clock, served_app
from tests.support.simulated import Simulation, page, site, topic

HOME = "http://a.test/"
DEED = "https://creativecommons.org/licenses/by-sa/4.0/"
WEB = site(
    page(HOME, "/free", "/closed", text="All about the whale"),
    page(HOME + "free", DEED, text="A whale is a large animal"),
    page(HOME + "closed", text="Another whale is a larger animal of the sea"),
    page(DEED, text="You are free to share the whale"),
)
EXAMPLE = ROOT / "docs" / "examples" / "focused-licences"
TOPIC = """
name = "whales"
[seeds]
urls = ["http://a.test/"]
[training]
directory = ["samples.tsv"]
good = ["Top/Whales"]
[politeness]
user_agent = "Bot/1 (+https://bot.example/about)"
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the example."""
    folder = tmp_path_factory.mktemp("package")
    source = shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", folder / "installed"]
    subprocess.run([*pip, *options, source], check=True)
    return folder / "installed"


@pytest.fixture
def licences(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """The dataclass of the section."""
    monkeypatch.syspath_prepend(package)
    installed_features.cache_clear()
    section = installed_features()["licences"].section
    assert section is not None
    yield section
    installed_features.cache_clear()


def subject(folder: Path, section: object) -> Topic:
    return replace(topic(folder, HOME), sections={"licences": section})


@pytest.fixture
def crawl(tmp_path: Path, licences: type) -> Simulation:
    """A crawl that ended, with its files."""
    done = Simulation(subject(tmp_path, licences(find=True)), WEB).run()
    folder = done.topic.output.folder
    write_parquet_files(done.store.tables, folder)
    settings = {"topic": topic_to_json(done.topic), "policy": "focused"}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "stats.json").write_text(json.dumps(done.crawl.feature_statistics()))
    done.close()
    return done


def write_topic(folder: Path, section: str) -> Path:
    (folder / "samples.tsv").write_text("Top/Whales\thttp://b.example/\tA\tB\n")
    path = folder / "whales.toml"
    path.write_text(TOPIC + section)
    return path


def test_the_example_is_short():
    lines = [path.read_text().count("\n") for path in EXAMPLE.iterdir() if path.is_file()]
    assert sum(lines) <= 120


def test_its_section_is_read_from_the_topic_file(tmp_path, licences):
    read = load_topic(write_topic(tmp_path, "[licences]\nfind = true\n"))
    assert read.section(licences) == licences(find=True, follow_deeds=False)
    assert load_topic(write_topic(tmp_path, "")).section(licences) == licences()


@pytest.mark.usefixtures("licences")
def test_errors_of_its_section_are_reported_with_all_others(tmp_path):
    path = write_topic(tmp_path, "[licences]\nfind = 1\nfollow_deed = true\n[budget]\npages = 0\n")
    with pytest.raises(ConfigurationError) as raised:
        load_topic(path)
    assert str(raised.value).splitlines() == [
        f"{path}:14: budget.pages: must be 1 or more, not 0",
        f"{path}:12: licences.follow_deed: unknown key; did you mean follow_deeds?",
        f"{path}:11: licences.find: expected bool, got int",
    ]


def test_its_column_holds_what_its_analyser_found(crawl):
    pages = pq.read_table(crawl.topic.output.folder / "pages.parquet").to_pylist()
    found = {row["url"]: row["licence"] for row in pages}
    assert found == {HOME: None, HOME + "free": "by-sa", HOME + "closed": None}


def test_its_filter_refuses_links(crawl, tmp_path, licences):
    assert DEED not in crawl.urls
    assert crawl.crawl.counters.out_of_scope["licence deed"] == 1
    following = subject(tmp_path / "other", licences(find=True, follow_deeds=True))
    with_deeds = Simulation(following, WEB).run()
    assert DEED in with_deeds.urls
    with_deeds.close()


def test_its_counts_survive_a_restart(crawl):
    crawl.restart()
    statistics = crawl.crawl.feature_statistics()
    assert statistics["licences"] == {"none": 2, "by-sa": 1}
    crawl.close()


def test_its_line_stands_in_the_report(crawl):
    printed = StringIO()
    print_report(crawl.topic.output.folder, Console(file=printed, width=100))
    (line,) = (line for line in printed.getvalue().splitlines() if "with a licence" in line)
    assert "1 of 3 on topic" in line


def test_the_console_has_its_tab(crawl):
    server = ConsoleServer([crawl.topic.output.folder], Clock()).app()
    with served_app(server.application) as origin:

        def ask(path: str) -> object:
            request = Request(f"{origin}/api/{path}", headers={TOKEN_HEADER: server.token})
            with urlopen(request, timeout=60) as response:
                return json.loads(response.read())

        ask("crawls")
        assert ask("feature-tabs") == {"tabs": [{"name": "licences", "title": "Licences"}]}
        assert ask("crawls/0/feature-tabs/licences") == {
            "headings": ["Licence", "Host", "Pages"],
            "rows": [["by-sa", "a.test", 1]],
        }


def test_its_analyser_runs_in_parser_processes(tmp_path, licences):
    simulation = Simulation(subject(tmp_path, licences(find=True)), WEB)
    handler = ParsingHandler(simulation.crawl.parser.page_parser())
    reply = decode_reply(handler(encode_request(WEB[HOME + "free"])))  # type: ignore[arg-type]
    assert isinstance(reply, ParsedPage)
    assert reply.findings["licences"] == "by-sa"
    simulation.close()


def test_where_it_is_off_nothing_of_it_is_in_the_crawl(tmp_path, licences):
    done = Simulation(subject(tmp_path, licences()), WEB).run()
    assert "licences" not in done.crawl.parser.page_parser().analysers
    assert "licences" not in done.store.tables.names
    assert "page_columns" not in done.store.tables.names
    done.close()
