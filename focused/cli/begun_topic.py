"""The files that a new topic begins with, and an attempt that was not finished."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from focused.cli.crawling import move_away
from focused.cli.output import echo
from focused.errors import ConfigurationError
from focused.learning.keyword_judge import KeywordJudge
from focused.topic import CRAWLS
from focused.topic_file import load_topic
from focused.whole_file import write_whole

DIRECTORY_HEAD = "# category <TAB> url <TAB> title; lines that begin with # do not count\n"
"""What the directory begins with; all there is in it until samples were found."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Idea:
    """What somebody has to say of a new topic."""

    name: str
    keywords: tuple[str, ...]
    seeds: Path
    user_agent: str
    folder: Path

    @property
    def topic_file(self) -> Path:
        """Where the topic will be."""
        return self.folder / f"{self.name}.toml"

    @property
    def directory(self) -> Path:
        """Where its samples will be listed."""
        return self.folder / f"{self.name}.tsv"

    @property
    def start(self) -> Path:
        """The folder of the crawl around its seeds."""
        return CRAWLS / f"{self.name}-start"


def begin_topic(idea: Idea) -> None:
    """Write topic file and directory, or leave those of the same idea, to go on with.

    What an attempt by other words left unfinished is moved aside. Raises
    :class:`ConfigurationError` for what cannot be a topic, and leaves nothing then;
    and where a topic of that name has samples already.
    """
    text = _topic_text(idea, _seeds_of(idea)).encode()
    KeywordJudge(idea.keywords)  # words that cannot be used are told before anything is written
    is_begun = _is_begun(idea)
    if is_begun and idea.topic_file.read_bytes() == text:
        echo(f"{idea.topic_file} was begun; going on with it")
        return
    if idea.start.exists():
        echo(f"the crawl of an earlier attempt was moved to {move_away(idea.start)}")
    if is_begun:
        _put_aside(idea.topic_file)
    idea.folder.mkdir(parents=True, exist_ok=True)
    write_whole(idea.directory, DIRECTORY_HEAD.encode())
    write_whole(idea.topic_file, text)
    try:
        load_topic(idea.topic_file)
    except ConfigurationError as error:
        idea.topic_file.unlink()
        idea.directory.unlink()
        raise ConfigurationError(_of_the_command(str(error), idea)) from error


def _is_begun(idea: Idea) -> bool:
    """Whether there is an attempt that found no samples; ConfigurationError if it found some."""
    if not _NAME.fullmatch(idea.name):
        raise ConfigurationError(f"{idea.name!r}: a name has letters, digits, '.', '_' and '-'")
    path, directory = idea.topic_file, idea.directory
    if directory.exists() and directory.read_bytes() != DIRECTORY_HEAD.encode():
        raise ConfigurationError(
            f"{directory} exists, with samples in it; choose another name, take it away first, "
            f"or go on with it: focused crawl {path}"
        )
    if path.exists() and not directory.exists():
        raise ConfigurationError(f"{path} exists; choose another name, or take it away first")
    return path.exists()


def _put_aside(path: Path) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(aside)
    echo(f"the topic file of an earlier attempt was moved to {aside}")


def _of_the_command(told: str, idea: Idea) -> str:
    """Mistakes named by the options that they were made in: the topic file is gone again."""
    return told.replace(f"{idea.topic_file}: seeds.urls", f"--seeds {idea.seeds}").replace(
        f"{idea.topic_file}: politeness.user_agent", "--user-agent (politeness.user_agent)"
    )


def _seeds_of(idea: Idea) -> list[str]:
    try:
        lines = idea.seeds.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--seeds {idea.seeds}: cannot be read: {error}") from error
    return [seed for line in lines if (seed := line.split("#")[0].strip())]


def _topic_text(idea: Idea, seeds: list[str]) -> str:
    listed = "".join(f"  {_quoted(seed, '--seeds')},\n" for seed in seeds)
    keywords = ", ".join(_quoted(word, "--keywords") for word in idea.keywords)
    return (
        f'name = "{idea.name}"\n\n'
        f"[seeds]\nurls = [\n{listed}]\n\n"
        "[training]\n"
        f'directory = ["{idea.name}.tsv"]\n'
        f'good = ["Top/{idea.name}"]\n'
        f"keywords = [{keywords}]\n\n"
        "[politeness]\n"
        f"user_agent = {_quoted(idea.user_agent, '--user-agent')}\n\n"
        "[budget]\npages = 1000\n"
    )


def _quoted(text: str, option: str) -> str:
    """A string of TOML: one of JSON, but for the delete character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{option}: {text!r} is not written in UTF-8") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
