"""One person's word on one page."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Verdict = Literal["yes", "no", "skip"]
"""On topic, off topic, or left open."""

Role = Literal["judge", "teach"]
"""What a label may be used for: to measure models, or to teach them; never both."""

Reason = Literal["random", "uncertain", "doubtful", "high", "searched", "given"]
"""Why the page was shown; ``given`` are labels that no choice of ours asked for."""


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody said of a page, and what the model had said of it.

    ``category`` is where the person put the page, as in the directory, or empty.
    ``relevance`` (0 to 1) and ``model`` (the beginning of its digest) are those of the
    moment the page was shown; None and empty when no model had judged it. ``at`` is in
    seconds since the epoch.
    """

    url: Annotated[str, msgspec.Meta(min_length=1)]
    verdict: Verdict
    role: Role
    at: float
    category: str = ""
    reason: Reason = "given"
    relevance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    model: str = ""
    title: str = ""
