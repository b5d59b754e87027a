"""The tree of errors, named for what the caller does next.

::

    FocusedError                say the message to the user and stop; never a traceback
    ├── ConfigurationError      mend the topic file or setting that the message names
    ├── TrainingError           mend the samples: too few, one class only, none reachable
    ├── ModelError              train again: the model is missing, damaged, foreign or too new
    ├── RecordedWebError        build or import the recorded web again
    ├── LabelError              mend the file of labels, or end the other session
    ├── ComparisonError         name another comparison's document, or compare again
    ├── MissingExtraError       install the extra that the message names
    └── StateError              the crawl's folder is damaged, foreign or in use

What goes wrong with a single page is no exception: it is a
:class:`focused.web.page.Failed`, counted and shown, and never stops a crawl.
Every message says what is wrong, where (file, line, key, URL) and what to do.
"""

_JOINERS = "\u200c\u200d"  # spell words in some scripts, and steer nothing


def escape_control_characters(text: str) -> str:
    """Write out what could steer a terminal or reorder its text: an escape becomes ``\\x1b``.

    For all text from outside that is printed: URLs, titles, anchors, file names, keys and
    values of files, messages of other programs. Line breaks stay; controls, bidirectional
    marks, lone surrogates and blanks that look like others are written as Python writes them.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\n" or char in _JOINERS
        else char.encode("unicode_escape").decode()
        for char in text
    )


class FocusedError(Exception):
    """Base of all errors that a user can mend; ``str()`` is fit for the terminal."""

    def __str__(self) -> str:
        return escape_control_characters(super().__str__())


class ConfigurationError(FocusedError):
    """A topic file, setting or argument is wrong; the message names the key."""


class TrainingError(FocusedError):
    """The classifier cannot be trained from the samples given."""


class ModelError(FocusedError):
    """A model file is missing, damaged, foreign, or newer than this program."""


class RecordedWebError(FocusedError):
    """A recorded web cannot be built, read or served."""


class LabelError(FocusedError):
    """A file of labels cannot be read or written, or another session has it."""


class ComparisonError(FocusedError):
    """A comparison's document is foreign or damaged."""


class StateError(FocusedError):
    """A crawl's folder is damaged, belongs to another crawl, or is in use."""


class MissingExtraError(FocusedError):
    """A command needs libraries of an extra that is not installed."""


_EXTRAS = {"report": "report", "why": "report", "compare": "experiments", "label": "label"}
_EXTRA_OF_MODULE = {
    "jinja2": "experiments",
    "matplotlib": "report",
    "nh3": "label",
    "pandas": "report",
}


def missing_extra(error: ModuleNotFoundError, command: str) -> MissingExtraError | None:
    """Return the error that names the extra to install; None where no extra has the module."""
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRA_OF_MODULE:
        return None
    extra = _EXTRAS.get(command, _EXTRA_OF_MODULE[module])
    return MissingExtraError(
        f"{command} needs {module}, which is not installed: pip install 'focused-crawler[{extra}]'"
    )
