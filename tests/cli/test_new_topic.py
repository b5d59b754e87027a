"""From keywords and a seed to a first model, labels, and a better model."""

from pathlib import Path

import pandas as pd
import pytest

from focused.classifier.model_file import list_versions
from focused.directory.directory_reader import load_directory
from focused.labels.label_file import Label, LabelFile, role_of
from focused.topic.topic_file import load_topic
from tests.cli.test_commands import in_a_process
from tests.support.forked import ROOT, run_forked
from tests.support.made_up_topic import BASE, write_site

BOT = "CheeseBot/1.0 (+https://example.org/bot)"
INTERRUPTED_AT_A_PAGE = """
import os, signal
from focused.cli import main
from focused.scrapy_addon.spiders.topic_spider import TopicSpider

pages = []

def parse(spider, response):
    pages.append(response)
    if len(pages) == 1:
        os.kill(os.getpid(), signal.SIGINT)

TopicSpider.parse = parse
main()
"""


@pytest.fixture(scope="module")
def idea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded web, and the topic that was begun there from three words."""
    home = tmp_path_factory.mktemp("idea")
    write_site(home / "site")
    done = in_a_process(home, "web", "import", "site", "--base-url", BASE, "--folder", "web")
    assert done.returncode == 0, done.stderr
    (home / "seeds.txt").write_text(f"{BASE}  # the front page\n")
    done = begin(home, "cheese")
    assert done.returncode == 0, done.stderr
    return home


def begin(home: Path, name: str, keywords: str = "rennet, gouda, brie, rind", *more: str):
    named = ["topic", "new", name, "--keywords", keywords, "--seeds", "seeds.txt"]
    options = ["--user-agent", BOT, "--web", "web", "--delay-s", "0", *more]
    return in_a_process(home, *named, *options)


def labels_of(home: Path) -> Path:
    """Somebody labels the pages of the first crawl."""
    topic = load_topic(home / "topics" / "cheese.toml")
    pages = pd.read_parquet(home / "crawls" / "cheese-start" / "pages.parquet")
    assert topic.training.labels is not None
    with LabelFile(topic.training.labels) as file:
        for url in pages[pages["outcome"] == "fetched"]["url"]:
            verdict = "yes" if "cheese" in url else "no"
            file.append(Label(url=url, verdict=verdict, role=role_of(url), at=1.0))
    return topic.training.labels


def test_the_topic_file_is_one_that_can_be_loaded_and_says_what_was_reported(idea):
    topic = load_topic(idea / "topics" / "cheese.toml")
    assert topic.training.keywords == ("rennet", "gouda", "brie", "rind")
    assert topic.politeness.user_agent == BOT
    assert topic.seeds.urls == (BASE,)


def test_samples_are_listed_to_be_looked_through_and_are_mostly_right(idea):
    lines = (idea / "topics" / "cheese.tsv").read_text(encoding="utf-8").splitlines()
    good = [line for line in lines if line.startswith("Top/cheese\t")]
    other = [line for line in lines if line.startswith("Top/Other\t")]
    assert sum("/cheese" in line.split("\t")[1] for line in good) >= 0.9 * len(good) >= 10
    assert sum("/garden" in line.split("\t")[1] for line in other) >= 0.9 * len(other) >= 10


def test_the_crawl_around_the_seeds_prints_no_report_of_its_own(idea):
    done = begin(idea, "plain")
    assert done.returncode == 0, done.stderr
    assert "pages fetched. Listed in topics/plain.tsv" in done.stdout
    assert "harvest rate" not in done.stdout
    assert not (idea / "crawls" / "plain-start" / "report.json").exists()


def test_the_first_model_is_there_and_crawls(idea):
    done = in_a_process(idea, "crawl", "topics/cheese.toml", "--web", "web", "--delay-s", "0")
    assert done.returncode == 0, done.stderr
    pages = pd.read_parquet(idea / "crawls" / "cheese" / "pages.parquet")
    found = pages[pages["on_topic"]]["url"]
    assert all("cheese" in url for url in found)


def test_keywords_that_no_page_has_are_reported_with_what_to_do(idea):
    done = begin(idea, "boats", "starboard, spinnaker")
    assert done.returncode == 2
    assert "contains the keywords (starboard, spinnaker)" in done.stderr
    assert "focused train" in done.stderr


def test_after_ctrl_c_the_same_command_continues(idea):
    asked = ["topic", "new", "rinds", "--keywords", "rennet, gouda, brie, rind"]
    options = ["--seeds", "seeds.txt", "--user-agent", BOT, "--web", "web", "--delay-s", "0.5"]
    stopped = run_forked(
        ["-c", INTERRUPTED_AT_A_PAGE, *asked, *options],
        folder=idea,
        environment={"PYTHONPATH": str(ROOT)},
    )
    assert stopped.returncode == 2
    assert "the same command resumes" in stopped.stderr
    done = begin(idea, "rinds")
    assert done.returncode == 0, done.stderr


def test_a_seed_that_does_not_exist_is_named_with_its_status_and_is_no_sample(idea):
    typo = f"{BASE}chese/1.html"
    (idea / "typo.txt").write_text(f"{BASE}\n{typo}\n")
    done = begin(idea, "typos", "rennet, gouda, brie, rind", "--seeds", "typo.txt")
    assert done.returncode == 0, done.stderr
    assert f"Seed {typo}: HTTP status 404." in done.stdout
    assert "Seed without a keyword, or not fetched: " + typo not in done.stdout
    assert typo not in (idea / "topics" / "typos.tsv").read_text(encoding="utf-8")


def test_neither_robots_txt_nor_a_page_twice_is_a_sample(idea):
    lines = (idea / "topics" / "cheese.tsv").read_text(encoding="utf-8").splitlines()
    urls = [line.split("\t")[1] for line in lines if not line.startswith("#")]
    assert not any(url.endswith("/robots.txt") for url in urls)
    pages = pd.read_parquet(idea / "crawls" / "cheese-start" / "pages.parquet")
    copies = set(pages[pages["duplicate_of"].notna()]["url"])
    assert not copies & set(urls) - {BASE}


def test_the_samples_of_a_new_topic_are_kept_so_that_retraining_fetches_nothing(idea):
    """Without --web the site cannot be reached: its host does not exist."""
    path = labels_of(idea)
    model = idea / "topics" / "cheese.joblib"
    before = model.read_bytes()
    topic = load_topic(idea / "topics" / "cheese.toml")
    listed = {entry.url for entry in load_directory(topic.training.directory)}
    kept = path.read_text(encoding="utf-8").splitlines()
    path.write_text(
        "".join(f"{line}\n" for line in kept if any(f'"{url}"' in line for url in listed)),
        encoding="utf-8",
    )
    done = in_a_process(idea, "retrain", "topics/cheese.toml", "--replace")
    path.unlink()
    model.write_bytes(before)
    assert done.returncode == 0, done.stderr
    assert "fetching the directory's pages" not in done.stdout


def test_retraining_without_labels_says_how_to_come_by_them(idea):
    done = in_a_process(idea, "retrain", "topics/cheese.toml", "--web", "web")
    assert done.returncode == 2
    assert "focused label" in done.stderr


@pytest.fixture
def labelled(idea: Path):
    """The topic with right labels of its first crawl; they and the models go with the test."""
    path = labels_of(idea)
    yield idea
    path.unlink()


def test_a_model_that_is_not_a_worse_takes_over_and_the_old_one_is_kept(labelled):
    model, directory = labelled / "topics" / "cheese.joblib", labelled / "topics" / "cheese.tsv"
    before, listed = model.read_bytes(), directory.read_bytes()
    directory.write_bytes(listed + f"Top/Other\t{BASE}new.html\tHedges\n".encode())
    done = in_a_process(labelled, "retrain", "topics/cheese.toml", "--web", "web", "--replace")
    assert done.returncode == 0, done.stderr
    number = list_versions(model)[-1]
    assert (model.with_suffix(".versions") / f"{number}.joblib").read_bytes() == before
    assert model.read_bytes() != before
    changes = model.with_suffix(".changes.md").read_text(encoding="utf-8")
    assert f"Version {number + 1}" in changes
    again = in_a_process(labelled, "retrain", "topics/cheese.toml", "--web", "web")
    assert again.returncode == 0, again.stderr
    assert "nothing that the model is trained on has changed" in again.stdout
    assert list_versions(model)[-1] == number
    back = in_a_process(labelled, "retrain", "topics/cheese.toml", "--restore", str(number))
    directory.write_bytes(listed)
    assert back.returncode == 0, back.stderr
    assert model.read_bytes() == before


def test_a_model_that_was_brought_back_classifies_the_next_crawl_though_the_directory_changed(idea):
    model, directory = idea / "topics" / "cheese.joblib", idea / "topics" / "cheese.tsv"
    before, listed = model.read_bytes(), directory.read_bytes()
    directory.write_bytes(listed + f"Top/Other\t{BASE}new.html\n".encode())
    again = ["crawl", "topics/cheese.toml", "--web", "web", "--delay-s", "0", "--pages", "3"]
    done = in_a_process(idea, *again, "--folder", "brought-1")
    assert done.returncode == 0, done.stderr
    assert model.read_bytes() != before
    number = list_versions(model)[-1]
    done = in_a_process(idea, "retrain", "topics/cheese.toml", "--restore", str(number))
    assert done.returncode == 0, done.stderr
    done = in_a_process(idea, *again, "--folder", "brought-2")
    assert done.returncode == 0, done.stderr
    directory.write_bytes(listed)
    assert model.read_bytes() == before


def test_a_model_that_cannot_be_read_is_replaced_by_retraining_and_told(labelled):
    model = labelled / "topics" / "cheese.joblib"
    before = model.read_bytes()
    model.write_bytes(before[:-9])
    done = in_a_process(labelled, "retrain", "topics/cheese.toml", "--web", "web")
    output, now = done.stdout, model.read_bytes()
    model.write_bytes(before)
    assert done.returncode == 0, done.stderr
    assert "nothing to compare" in output
    assert now != before[:-9]


def test_pages_that_taught_by_a_label_are_no_harvest_of_the_next_crawl(labelled):
    options = ["--web", "web", "--delay-s", "0", "--folder", "taught"]
    done = in_a_process(labelled, "crawl", "topics/cheese.toml", *options)
    assert done.returncode == 0, done.stderr
    pages = pd.read_parquet(labelled / "taught" / "pages.parquet").set_index("url")
    teaching = [url for url in pages.index if role_of(url) == "training"]
    assert teaching and pages.loc[teaching, "training"].all()
