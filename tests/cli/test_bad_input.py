"""User errors in real commands: one clear line, an exit status, no traceback."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from focused.cli import main
from tests.support.crawling import ROOT, write_topic
from tests.support.forked import run_forked
from tests.support.recorded_web import MemoryWeb, Served, html, page, served

WEB = MemoryWeb(page("http://a.test/", html("Start", "/more")), page("http://a.test/more", html()))
GUIDED = ("-s", "FOCUSED_MODELS=tests.support.whale_models.fixed_models")


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    out: str
    errors: str

    def complains(self, *words: str) -> None:
        """Nothing but one clear complaint, which holds all the words."""
        assert self.status != 0, self.errors
        assert "Traceback" not in self.errors + self.out
        lines = self.errors.splitlines()
        assert lines[-1].startswith("focused: "), self.errors
        for word in words:
            assert word in lines[-1], self.errors


def run(module: str, *arguments: object, cwd: Path = ROOT) -> Ran:
    done = run_forked(
        [module, *map(str, arguments)],
        folder=cwd,
        environment={"PYTHONPATH": str(ROOT)},
        timeout_s=60,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def crawl(topic: Path, *options: object) -> Ran:
    return run("scrapy", "crawl", "topic", "-a", f"topic={topic}", *options)


def crawl_on(site: Served, topic: Path, *options: object) -> Ran:
    return crawl(topic, "-s", f"FOCUSED_REPLAY={site.address}", *GUIDED, *options)


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    return write_topic(tmp_path, "http://a.test/")


def rewrite(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def focused(*arguments: object) -> Ran:
    """The command without a process of its own: what fails before Scrapy starts."""
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)


def train(topic: Path) -> Ran:
    return focused("train", topic)


def crawl_by_command(topic: Path) -> Ran:
    return focused("crawl", topic)


@pytest.fixture(params=[crawl_by_command, train])
def command(request):
    """The commands of ``focused`` that read a topic file."""
    return request.param


@pytest.fixture(params=[crawl, train])
def trainer(request):
    """What trains: the command, and a crawl without a model."""
    return request.param


def test_a_missing_topic_file_is_named(command):
    command(Path("nowhere/missing.toml")).complains("nowhere/missing.toml", "no such")


def test_an_unknown_key_is_named_with_its_file(command, topic):
    rewrite(topic, "delay_s", "delays")
    command(topic).complains(str(topic), "politeness", "delays")


def test_a_value_of_the_wrong_type_is_named_with_its_key(command, topic):
    rewrite(topic, "timeout_s = 60.0", 'timeout_s = "soon"')
    command(topic).complains(str(topic), "politeness.timeout_s")


def test_a_prior_that_is_not_there_is_named_before_anything_is_fetched(topic):
    rewrite(topic, "[training]", '[training]\nlink_prior = "nonesuch"')
    done = crawl(topic)
    done.complains("training.link_prior", "nonesuch", "all-webs")
    assert "directory's pages" not in done.errors


def test_a_file_that_is_not_a_toml_is_named(command, topic):
    topic.write_text("name = ")
    command(topic).complains(str(topic))


def test_an_unusable_seed_is_quoted(command, topic):
    rewrite(topic, "http://a.test/", "ftp://a.test/")
    command(topic).complains("seeds", "ftp://a.test/")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("delay_s = 0.0", 'delay_s = 0.0\n"\\u001b[2Jdelay" = 1'),
        ('Top/Whales"]', 'Top/Whales"]\nestimator = "\\u001b]0;owned\\u0007"'),
        ("'http://a.test/'", '"\\u001b[31mred"'),
        ("directory.tsv", "\\u202egnp.txt"),
    ],
    ids=["key", "value", "seed", "file name"],
)
def test_nothing_in_a_topic_file_steers_the_terminal(command, topic, old, new):
    rewrite(topic, old, new)
    ran = command(topic)
    ran.complains("\\u202e" if "202e" in new else "\\x1b")
    assert not set(ran.errors) & set("\x1b\x07\u202e")


def test_nothing_in_labels_of_a_recorded_web_steers_the_terminal(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("<title>Start</title><p>Text about whales.")
    labels = tmp_path / "labels.tsv"
    labels.write_text("http://a.test/\t[link=file:///]Top\x1b[31m\n")
    web = tmp_path / "web"
    ran = focused(
        "web", "import", pages, "--folder", web, "--base-url", "http://a.test/", "--labels", labels
    )
    assert ran.status == 0, ran.errors
    assert "[link=file:///]Top\\x1b[31m" in focused("web", "info", web).out


def test_an_empty_directory_is_named(trainer, topic):
    directory = topic.with_name("directory.tsv")
    directory.write_text("category\turl\ttitle\tdescription\n")
    trainer(topic).complains("training.directory", str(directory))


def test_a_good_category_without_samples_is_reported_before_any_page_is_fetched(trainer, topic):
    rewrite(topic, "Top/Whales", "Top/Wales")
    ran = trainer(topic)
    ran.complains("training.good", "'Top/Wales'", "Top/Whales")
    assert not topic.with_name("whales.samples").exists()


def test_a_directory_without_a_good_sample_is_reported_before_any_page_is_fetched(trainer, topic):
    rewrite(topic.with_name("directory.tsv"), "Top/Whales", "Top/Other")
    ran = trainer(topic)
    ran.complains("training.good", "Top/Whales", "no sample in the directory")
    assert not topic.with_name("whales.samples").exists()


def test_a_topic_file_that_scrapy_cannot_find_is_named():
    crawl(Path("nowhere/missing.toml")).complains("nowhere/missing.toml", "no such")


def test_the_command_as_a_process_ends_in_the_same_way():
    ran = run("focused.cli", "crawl", "nowhere/missing.toml")
    ran.complains("nowhere/missing.toml", "no such")


def test_scrapy_crawl_topic_without_a_topic_says_how_to_give_one():
    run("scrapy", "crawl", "topic").complains("-a topic=")


def test_a_spider_that_does_not_exist_is_answered_with_those_there_are():
    ran = run("scrapy", "crawl", "typo")
    assert ran.status == 2
    assert ran.errors == "focused: there is no spider 'typo'; there are samples, topic\n"


def test_unreachable_seeds_end_the_crawl_and_are_reported(tmp_path):
    topic = write_topic(tmp_path, "http://no.test/", politeness="max_tries = 1")
    with served(WEB) as site:
        ran = crawl_on(site, topic)
    assert ran.status == 1
    assert "Traceback" not in ran.errors + ran.out
    assert "focused: no page came from the seeds (http://no.test/): no-such-host (1)" in ran.errors
    assert "frontier is empty" in ran.out


def test_a_folder_of_another_topic_is_left_alone(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    with served(WEB) as site:
        assert crawl_on(site, topic).status == 0
        before = (tmp_path / "out/pages.parquet").read_bytes()
        rewrite(topic, '"whales"', '"dolphins"')
        ran = crawl_on(site, topic)
        asked = len(site.accesses)
    ran.complains("another crawl", "'whales'", "'dolphins'", "output.folder")
    assert "fetched" not in ran.out
    assert (tmp_path / "out/pages.parquet").read_bytes() == before
    assert asked == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "{}"),
        ("report", "{}/nothing"),
        ("why", "http://a.test/", "--folder", "{}"),
        ("web", "serve", "{}"),
        ("web", "serve", "{}/nothing"),
        ("web", "info", "{}"),
        ("crawl", "{}/whales.toml", "--web", "{}"),
        ("crawl", "{}/whales.toml", "--web", "{}/nothing"),
        ("train", "{}/missing.toml"),
    ],
    ids=" ".join,
)
def test_a_folder_or_file_of_another_kind_is_named(arguments, tmp_path):
    write_topic(tmp_path, "http://a.test/")
    focused(*(each.format(tmp_path) for each in arguments)).complains(str(tmp_path))


def test_why_of_a_url_that_was_never_fetched_says_so(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    with served(WEB) as site:
        crawl_on(site, topic)
    ran = focused("why", "http://a.test/never", "--folder", tmp_path / "out")
    assert ran.status != 0
    assert ran.errors.startswith("focused: http://a.test/never: ")


def test_why_without_any_crawl_says_how_to_name_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    focused("why", "http://a.test/").complains("crawls/", "--folder")


def test_a_fault_that_cannot_be_read_is_quoted(tmp_path):
    ran = focused("web", "serve", tmp_path, "--fault", "a.test:kind=flood")
    ran.complains("flood")


def test_fresh_leaves_a_folder_alone_that_is_not_a_crawls(topic):
    (topic.parent / "out").mkdir()
    (topic.parent / "out/thesis.txt").write_text("mine")
    ran = focused("crawl", topic, "--fresh")
    ran.complains(str(topic.parent / "out"), "--fresh")
    assert (topic.parent / "out/thesis.txt").read_text() == "mine"


def test_fresh_leaves_the_earlier_crawl_in_its_place_when_the_start_is_refused(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    with served(WEB) as site:
        assert crawl_on(site, topic).status == 0
    rewrite(topic.with_name("directory.tsv"), "Top/Whales", "Top/Other")
    ran = run("focused.cli", "crawl", topic, "--fresh")  # there is no good sample
    ran.complains("the earlier one is in", str(tmp_path / "out"))
    assert "training.good" in ran.errors
    assert (tmp_path / "out/pages.parquet").is_file()
    assert not (tmp_path / "out.1").exists()


def test_a_crawl_that_breaks_before_it_begins_points_to_its_log(tmp_path):
    topic = write_topic(tmp_path, "http://a.test/")
    (tmp_path / "out/pages.warc.gz").mkdir(parents=True)
    with served(WEB) as site:
        ran = crawl_on(site, topic)
    ran.complains(str(tmp_path / "out"))
