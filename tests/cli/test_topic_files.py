"""The files of a new topic: written once, resumed, never lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from focused.cli.topic_files import NewTopicOptions, write_topic_files
from focused.errors import ConfigurationError
from focused.topic.topic_file import load_topic

BOT = "CheeseBot/1.0 (+https://example.org/bot)"


@pytest.fixture
def idea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NewTopicOptions:
    monkeypatch.chdir(tmp_path)  # crawls lie where the command runs
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("https://a.example/\n")
    return NewTopicOptions("cheese", ("gouda", "brie"), seeds, BOT, tmp_path / "topics")


def files(idea: NewTopicOptions) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in idea.folder.glob("*.*")}


def test_seeds_may_be_written_by_an_editor_of_windows(idea):
    idea.seeds.write_bytes(b"\xef\xbb\xbfhttps://a.example/\r\nhttps://b.example/\r\n\r\n")
    write_topic_files(idea)
    assert load_topic(idea.topic_file).seeds.urls == ("https://a.example/", "https://b.example/")


@pytest.mark.parametrize("word", ["caf\x7fe", 'a "quoted" word', "back\\slash", "tab\there", "鯨"])
def test_any_keyword_comes_back_out_of_the_topic_file_as_it_was_reported(idea, word):
    write_topic_files(replace(idea, keywords=(word,)))
    assert load_topic(idea.topic_file).training.keywords == (word,)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keywords": ("caf\udcff",)}, "--keywords.*not written in UTF-8"),
        ({"keywords": ("*",)}, "has no word"),
        ({"keywords": ()}, "at least one keyword"),
        ({"user_agent": "me"}, "--user-agent"),
        ({"name": "a/b"}, "a name has up to 100 letters"),
        ({"name": "a" * 101}, "a name has up to 100 letters"),
    ],
)
def test_what_can_be_no_topic_is_reported_by_its_option_and_leaves_nothing(idea, changed, message):
    with pytest.raises(ConfigurationError, match=message):
        write_topic_files(replace(idea, **changed))
    assert not files(idea)


def test_seeds_that_are_none_are_reported_by_the_file_they_stand_in(idea):
    idea.seeds.write_text("www.example.org\n")
    with pytest.raises(ConfigurationError, match=r"--seeds .*seeds\.txt.*not a URL"):
        write_topic_files(idea)
    assert not files(idea)


def test_seeds_that_are_no_utf_8_are_reported_with_the_line(idea):
    idea.seeds.write_bytes("https://a.test/\nhttps://a.test/\xe9\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"--seeds .*seeds\.txt: line 2 is not UTF-8"):
        write_topic_files(idea)


def test_the_same_idea_continues_with_what_was_begun(idea):
    write_topic_files(idea)
    before = files(idea)
    (idea.start / "state").mkdir(parents=True)
    write_topic_files(idea)
    assert files(idea) == before
    assert (idea.start / "state").is_dir()


def test_what_somebody_added_to_the_file_of_an_attempt_stays(idea):
    write_topic_files(idea)
    with idea.topic_file.open("a") as file:
        file.write("\n[scope]\nprivate_addresses = true\n")
    write_topic_files(idea)
    assert load_topic(idea.topic_file).scope.private_addresses


def test_seeds_and_keywords_that_are_given_twice_are_the_same_idea(idea):
    idea.seeds.write_text("https://a.example/\nhttps://a.example/\n")
    twice = replace(idea, keywords=("gouda", "brie", "gouda"), user_agent=f" {BOT} ")
    write_topic_files(twice)
    before = files(idea)
    write_topic_files(twice)
    assert files(idea) == before


def test_a_file_that_lists_samples_elsewhere_is_not_continued(idea):
    write_topic_files(idea)
    elsewhere = idea.topic_file.read_text().replace('["cheese.tsv"]', '["mine.tsv", "cheese.tsv"]')
    idea.topic_file.write_text(elsewhere)
    (idea.folder / "mine.tsv").write_text("Top/cheese\thttps://a.example/\n")
    write_topic_files(idea)
    assert load_topic(idea.topic_file).training.directory == (idea.directory,)
    assert (idea.folder / "cheese.toml.1").read_text() == elsewhere


def test_a_file_that_somebody_made_invalid_is_told_and_left(idea):
    write_topic_files(idea)
    with idea.topic_file.open("a") as file:
        file.write("\n[scoop]\n")
    before = files(idea)
    with pytest.raises(ConfigurationError, match="scoop"):
        write_topic_files(idea)
    assert files(idea) == before


def test_other_words_after_an_attempt_that_found_no_samples_begin_anew_and_lose_nothing(idea):
    write_topic_files(idea)
    before = idea.topic_file.read_bytes()
    write_topic_files(replace(idea, keywords=("rind",)))
    assert load_topic(idea.topic_file).training.keywords == ("rind",)
    assert (idea.folder / "cheese.toml.1").read_bytes() == before


def test_a_topic_that_has_samples_is_left_alone_and_its_next_step_told(idea):
    write_topic_files(idea)
    idea.directory.write_text("Top/cheese\thttps://a.example/\n")
    before = files(idea)
    with pytest.raises(ConfigurationError, match="focused crawl"):
        write_topic_files(replace(idea, keywords=("rind",)))
    assert files(idea) == before


def test_a_topic_file_that_somebody_wrote_is_left_alone(idea):
    idea.folder.mkdir()
    idea.topic_file.write_text("name = 'mine'")
    with pytest.raises(ConfigurationError, match="exists"):
        write_topic_files(idea)
    assert idea.topic_file.read_text() == "name = 'mine'"
