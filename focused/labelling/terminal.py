"""Labelling on the terminal: pages as text, one key per answer."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Sequence

import click

from focused.errors import LabelError
from focused.labelling.page_renderer import PageRenderer
from focused.labelling.session import LabellingSession, ShownPage, format_counts, format_reason
from focused.labels.label_file import Label, Verdict
from focused.labels.precision_estimate import format_share

_VERDICTS: dict[str, Verdict] = {"y": "yes", "n": "no", "x": "spam", "s": "skip"}
_KEYS = "y yes  n no  x spam  s skip  u undo  / search  space more  b back  q quit"


class LabellingTerminal:
    """Labels by single keys. ``read_key`` returns the next one, ``clock`` seconds since the
    epoch.
    """

    def __init__(
        self,
        session: LabellingSession,
        *,
        clock: Callable[[], float],
        reader: PageRenderer,
        read_key: Callable[[], str] = click.getchar,
        read_line: Callable[[str], str] = input,
    ) -> None:
        self._session = session
        self._reader = reader
        self._clock = clock
        self._read_key = read_key
        self._decode_line = read_line
        self._screen = 0
        self._told = ""

    def run(self) -> None:
        """Show page after page until ``q``, Ctrl-C, the end of input, or of the pages."""
        while (shown := self._session.current()) is not None:
            text = self._reader.text(self._session.crawled, shown.page)
            screens = _split_screens("\n\n".join(filter(None, (text.problem, text.content))))
            self._screen = 0
            while self._session.current() == shown:
                self._print(shown, screens)
                try:
                    key = self._read_key().lower()
                except (KeyboardInterrupt, EOFError):
                    return
                except OSError as error:
                    raise LabelError(
                        "there is no terminal to read keys from: remove --terminal, "
                        f"or run this interactively ({error.strerror})"
                    ) from error
                if key in ("q", "\x03", "\x04", ""):
                    return
                try:
                    self._press(key, shown, len(screens))
                except LabelError as error:
                    self._told = str(error)
        click.echo("All useful pages of this crawl are labelled.")

    def _press(self, key: str, shown: ShownPage, screens: int) -> None:
        if key in _VERDICTS:
            self._answer(shown, _VERDICTS[key], "")
        elif key.isdecimal() and 1 <= int(key) <= len(self._session.task.categories):
            category = self._session.task.categories[int(key) - 1]
            self._answer(shown, "yes" if category.good else "no", category.name)
        elif key == "u":
            undone = self._session.undo(self._clock())
            self._told = f"Undone: {undone.title or undone.url}" if undone else "Nothing to undo."
        elif key == "/":
            self._search()
        elif key in (" ", "\r", "\n", "\x1b[b", "\x1b[6~"):
            self._screen = min(self._screen + 1, screens - 1)
        elif key in ("b", "\x1b[a", "\x1b[5~"):
            self._screen = max(self._screen - 1, 0)

    def _search(self) -> None:
        """Ask for words, list the pages that have them, and show the one that is picked."""
        try:
            found = self._session.search(self._decode_line("Search for: "))
            if not found:
                self._told = "No page without a label has these words."
                return
            for number, page in enumerate(found, start=1):
                click.echo(_printable(f"{number:3} {page.title or page.url}  {page.url}"))
            picked = self._decode_line("Show number (Enter: none): ").strip()
        except (KeyboardInterrupt, EOFError):
            return
        if picked.isdecimal() and 1 <= int(picked) <= len(found):
            self._session.show(found[int(picked) - 1].url)

    def _answer(self, shown: ShownPage, verdict: Verdict, category: str) -> None:
        label = self._session.answer(shown.page.url, verdict, category, self._clock())
        self._told = _format_answer(label)

    def _print(self, shown: ShownPage, screens: Sequence[str]) -> None:
        progress = self._session.progress()
        click.clear()
        click.echo(
            f"{self._session.task.name}: {format_counts(progress)}  |  "
            f"precision {format_share(progress.precision, progress.precision_answers)}  |  "
            f"harvest {format_share(progress.harvest, progress.harvest_answers)}"
        )
        click.secho(_printable(self._told), dim=True)
        click.secho(_printable(shown.page.title or shown.page.url), bold=True)
        click.echo(_printable(shown.page.url))
        click.secho(_format_reason(shown), dim=True)
        click.echo(f"\n{screens[self._screen]}\n")
        if len(screens) > 1:
            click.secho(f"(screen {self._screen + 1} of {len(screens)})", dim=True)
        for number, category in enumerate(self._session.task.categories, start=1):
            click.echo(_printable(f"{number} {category.name}"), nl=False)
            click.echo("  ", nl=False)
        click.echo(f"\n{_KEYS}")


def _format_reason(shown: ShownPage) -> str:
    if shown.role == "evaluation":
        return f"{format_reason(shown)}; the classifier's relevance is hidden until you answer"
    return (
        f"{format_reason(shown)}; relevance {shown.relevance:.2f}, "
        f"score before the fetch {shown.page.score:.2f}"
    )


def _format_answer(label: Label) -> str:
    answer = f"{label.verdict}, {label.category}" if label.category else label.verdict
    model = "" if label.relevance is None else f" The classifier gave it {label.relevance:.2f}."
    return f"You said {answer}: {label.title or label.url}.{model}"


def _split_screens(text: str) -> list[str]:
    """Wrap the text and split it into screens, at least one."""
    columns, rows = shutil.get_terminal_size()
    width, height = min(columns, 100), max(rows - 12, 5)
    lines = [
        wrapped
        for line in text.split("\n")
        for wrapped in textwrap.wrap(_printable(line), width) or [""]
    ]
    found = ["\n".join(lines[at : at + height]) for at in range(0, len(lines), height)]
    return found or ["(no text)"]


def _printable(text: str) -> str:
    """Replace control characters: a page must not control the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
