"""Where runs begin: the topic's own seeds, drawn ones, or those of a file."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from focused.errors import ConfigurationError
from focused.evaluation.examination.referee import Referee
from focused.evaluation.examination.webs import Say
from focused.topic import Topic
from focused.web.url import normalise

TOPIC_SEEDS = "topic"
_DRAWN = {"on-topic": True, "off-topic": False}
_KINDS = "'topic', nor such as 'on-topic:5' or 'off-topic:5', nor a file of URLs"


@dataclass(frozen=True, slots=True)
class Seeds:
    """One kind of start, by the ``name`` it was asked for with.

    ``drawn`` is (on topic, how many); ``urls`` are those of a file; neither:
    the topic's own.
    """

    name: str
    drawn: tuple[bool, int] | None = None
    urls: tuple[str, ...] = ()

    def of(self, topic: Topic, referee: Referee, repeat: int, seed: int) -> Sequence[str]:
        """The URLs to begin at: the same for all policies of one repeat.

        Raises ConfigurationError when there are too few pages to draw from.
        """
        if self.drawn is None:
            return self.urls or topic.seeds.urls
        # A string seeds by its SHA-512: the same on every machine and Python.
        rng = random.Random(f"{topic.name} {self.name} {repeat} {seed}")
        return referee.draw_seeds(*self.drawn, rng)


def parse_seeds(text: str, say: Say = lambda line: None) -> Seeds:
    """Read what ``--seeds`` was given; ``say`` is told of a file's useless lines.

    Raises ConfigurationError.
    """
    if text == TOPIC_SEEDS:
        return Seeds(text)
    kind, _, count = text.partition(":")
    if kind in _DRAWN and count.isascii() and count.isdigit() and int(count):
        return Seeds(text, drawn=(_DRAWN[kind], int(count)))
    if kind not in _DRAWN and Path(text).is_file():
        return Seeds(text, urls=_of_file(Path(text), say))
    raise ConfigurationError(f"--seeds: {text!r} is neither {_KINDS}")


def _of_file(path: Path, say: Say) -> tuple[str, ...]:
    """One URL per line; ``#`` starts a comment on a line of its own or after a blank."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--seeds {path}: cannot be read as UTF-8: {error}") from error
    urls: list[str] = []
    junk: list[int] = []
    for number, line in enumerate(lines, start=1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        url = normalise(text) if text else None
        if url is not None:
            urls.append(url)
        elif text:
            junk.append(number)
    if not urls:
        raise ConfigurationError(f"--seeds {path}: holds no http or https URL")
    if junk:
        shown = ", ".join(map(str, junk[:5])) + (" ..." if len(junk) > 5 else "")
        say(f"--seeds {path}: {len(junk)} lines are no URL and passed over (line {shown})")
    return tuple(dict.fromkeys(urls))
