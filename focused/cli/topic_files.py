"""Write the files of a new topic: topic file and directory, from an example or from keywords."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from focused.cli.common import echo, free_path, read_url_file
from focused.errors import ConfigurationError
from focused.files import write_atomically
from focused.topic import DEFAULT_CRAWLS_FOLDER, Topic
from focused.topic.topic_file import TOPIC_NAME, load_topic

DIRECTORY_HEAD = "# category <TAB> url <TAB> title; lines that begin with # do not count\n"
"""First line of the directory, its only content before samples are found."""
_EXAMPLE_AGENT = "FocusedBot/0.1 (+https://example.org/about-my-crawler; crawler@example.org)"


@dataclass(frozen=True, slots=True)
class NewTopicOptions:
    """The options of a new topic."""

    name: str
    keywords: tuple[str, ...]
    seeds: Path
    user_agent: str
    folder: Path

    @property
    def topic_file(self) -> Path:
        """Path of the topic file."""
        return self.folder / f"{self.name}.toml"

    @property
    def directory(self) -> Path:
        """Path of the directory."""
        return self.folder / f"{self.name}.tsv"

    @property
    def category(self) -> str:
        """The category of the pages on topic."""
        return f"Top/{self.name}"

    @property
    def start(self) -> Path:
        """Folder of the crawl around the seeds."""
        return DEFAULT_CRAWLS_FOLDER / f"{self.name}-start"


def init_topic(name: str, folder: Path, user_agent: str | None) -> tuple[Path, Path]:
    """Write a commented topic file to edit, and a directory with a few samples.

    Raises :class:`ConfigurationError` if one of the files exists, or for an invalid name.
    """
    check_name(name)
    data = files(__package__) / "data"
    text = (data / "topic.toml").read_text("utf-8")
    for example, own in (
        ("focused crawl example.toml", f"focused crawl {folder / name}.toml"),
        ('name = "example"  ', f'name = "{name}"  '),
        ("example-directory.tsv", f"{name}.tsv"),
        ("../models/example.", f"{name}."),
        ('folder = "../crawls/example"', f'# folder = "../crawls/{name}"'),
        (_quoted(_EXAMPLE_AGENT, ""), _quoted(user_agent or "", "--user-agent")),
    ):
        text = text.replace(example, own)
    topic_file, directory = folder / f"{name}.toml", folder / f"{name}.tsv"
    for path in (topic_file, directory):
        if path.exists():
            raise ConfigurationError(f"{path} exists; choose another name, or remove it first")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(directory, (data / "directory.tsv").read_bytes())
    write_atomically(topic_file, text.encode())
    return topic_file, directory


def check_name(name: str) -> None:
    """Raise :class:`ConfigurationError` for an invalid name."""
    if not TOPIC_NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r}: a name has up to 100 letters, digits, '.', '_', '-'")


def write_topic_files(options: NewTopicOptions) -> None:
    """Write topic file and directory, or keep those of an attempt with the same options.

    What was added to the file of that attempt stays, such as ``scope``. Files of an unfinished
    attempt with other options are renamed. Raises :class:`ConfigurationError` for invalid options,
    and leaves no files; also if the topic has samples already, or its file became invalid, and
    leaves all files.
    """
    from focused.classifier.keyword_classifier import KeywordClassifier  # slow, and not for schema
    from focused.cli.crawl import move_crawl_folder

    seeds = read_url_file(options.seeds, f"--seeds {options.seeds}")
    text = _topic_text(options, seeds).encode()
    KeywordClassifier(options.keywords)  # raises for unusable keywords, before files are written
    is_begun = _has_unfinished_files(options)
    if is_begun and _has_options(load_topic(options.topic_file), options, seeds):
        echo(f"{options.topic_file} exists; resuming")
        return
    if options.start.exists():
        echo(f"the crawl of an earlier attempt was moved to {move_crawl_folder(options.start)}")
    if is_begun:
        aside = options.topic_file.rename(free_path(options.topic_file))
        echo(f"the topic file of an earlier attempt was moved to {aside}")
    options.folder.mkdir(parents=True, exist_ok=True)
    write_atomically(options.directory, DIRECTORY_HEAD.encode())
    write_atomically(options.topic_file, text)
    try:
        load_topic(options.topic_file)
    except ConfigurationError as error:
        options.topic_file.unlink()
        options.directory.unlink()
        raise ConfigurationError(_name_options(str(error), options)) from error


def _has_unfinished_files(options: NewTopicOptions) -> bool:
    """Whether an attempt without samples exists; raises ConfigurationError for one with samples."""
    check_name(options.name)
    path, directory = options.topic_file, options.directory
    if directory.exists() and directory.read_bytes() != DIRECTORY_HEAD.encode():
        raise ConfigurationError(
            f"{directory} exists, with samples in it; choose another name, take it away first, "
            f"or go on with it: focused crawl {path}"
        )
    if path.exists() and not directory.exists():
        raise ConfigurationError(f"{path} exists; choose another name, or take it away first")
    return path.exists()


def _has_options(topic: Topic, options: NewTopicOptions, seeds: list[str]) -> bool:
    training = topic.training
    return (
        topic.seeds.urls == tuple(dict.fromkeys(seeds))
        and training.keywords == tuple(dict.fromkeys(options.keywords))
        and topic.politeness.user_agent == options.user_agent.strip()
        and training.good[:1] == (options.category,)
        and training.directory[0].resolve() == options.directory.resolve()
    )


def _name_options(message: str, options: NewTopicOptions) -> str:
    """Replace the topic file's keys by option names, because the file was removed."""
    option = {
        "seeds.urls": f"--seeds {options.seeds}",
        "politeness.user_agent": "--user-agent (politeness.user_agent)",
    }
    lines = []
    for line in message.splitlines():
        _, _, told = line.removeprefix(f"{options.topic_file}:").partition(" ")
        key, _, what = told.partition(":")
        lines.append(f"{option[key]}:{what}" if key in option else line)
    return "\n".join(lines)


def _topic_text(options: NewTopicOptions, seeds: list[str]) -> str:
    listed = "".join(f"  {_quoted(seed, '--seeds')},\n" for seed in seeds)
    keywords = ", ".join(_quoted(word, "--keywords") for word in options.keywords)
    return (
        f'name = "{options.name}"\n\n'
        f"[seeds]\nurls = [\n{listed}]\n\n"
        "[training]\n"
        f'directory = ["{options.name}.tsv"]\n'
        f'good = ["{options.category}"]\n'
        f"keywords = [{keywords}]\n\n"
        "[politeness]\n"
        f"user_agent = {_quoted(options.user_agent, '--user-agent')}\n\n"
        "[budget]\npages = 1000\n"
    )


def _quoted(text: str, option: str) -> str:
    """Return a TOML string: a JSON string with the delete character escaped."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{option}: {text!r} is not written in UTF-8") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
