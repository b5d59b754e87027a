"""The tree of errors, named for what the caller does next.

::

    FocusedError                say the message to the user and stop; never a traceback
    ├── ConfigurationError      mend the topic file or setting that the message names
    ├── TrainingError           mend the samples: too few, one class only, none reachable
    ├── ModelError              train again: the model is missing, damaged, foreign or too new
    ├── RecordedWebError        build or import the recorded web again
    ├── LabelError              mend the file of labels, or end the other session
    ├── ComparisonError         name another comparison's document, or compare again
    └── StateError              the crawl's folder is damaged, foreign or in use

What goes wrong with a single page is no exception: it is a
:class:`focused.web.page.Failed`, counted and shown, and never stops a crawl.
Every message says what is wrong, where (file, line, key, URL) and what to do.
"""


class FocusedError(Exception):
    """Base of all errors that a user can mend; ``str()`` is fit for the terminal."""


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
