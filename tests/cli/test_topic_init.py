"""``focused topic init``: a commented topic file to start from, without a checkout."""

from functools import partial
from pathlib import Path

import pytest

from focused.topic.topic_file import load_topic
from tests.support.command import focused

BOT = "CheeseBot/1.0 (+https://cheese.test/bot)"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


init = partial(focused, "topic", "init")


def test_the_topic_file_loads_and_bears_the_name():
    init("cheese", "--user-agent", BOT)
    topic = load_topic(Path("topics/cheese.toml"))
    assert topic.name == "cheese"
    assert topic.politeness.user_agent == BOT
    assert [path.name for path in topic.training.directory] == ["cheese.tsv"]
    assert topic.training.model.name == "cheese.joblib"


def test_nothing_of_the_example_is_left_in_paths_and_names():
    init("cheese", "--user-agent", BOT)
    lines = Path("topics/cheese.toml").read_text().splitlines()
    settings = [line.partition("#")[0] for line in lines]
    assert not [line for line in settings if "example" in line]


def test_each_key_has_its_comment():
    init("cheese", "--user-agent", BOT)
    text = Path("topics/cheese.toml").read_text()
    assert "# seconds between two requests to one host" in text
    assert "focused crawl topics/cheese.toml" in text


def test_the_crawls_folder_is_the_default_one():
    init("cheese", "--user-agent", BOT)
    assert load_topic(Path("topics/cheese.toml")).output.folder == Path("crawls/cheese")


def test_without_a_user_agent_the_crawl_asks_for_one():
    assert "user_agent" in init("cheese").output
    done = focused("crawl", "topics/cheese.toml", status=2)
    assert "politeness.user_agent" in done.output


@pytest.mark.parametrize("there", ["cheese.toml", "cheese.tsv"])
def test_a_file_that_exists_is_left_alone(there):
    Path("topics").mkdir()
    Path("topics", there).write_text("mine")
    done = init("cheese", "--user-agent", BOT, status=2)
    assert f"{there} exists" in done.output
    assert [path.name for path in Path("topics").iterdir()] == [there]
    assert Path("topics", there).read_text() == "mine"


def test_a_name_that_cannot_be_is_refused():
    init("a/b", status=2)
