"""What a client of a replay server and the server tell each other, beside HTTP."""

from __future__ import annotations

SCHEME_HEADER = "X-Focused-Scheme"
"""Of a request: the scheme that is meant, ``http`` unless told."""

FAULT_HEADER = "X-Focused-Fault"
"""Of an answer that no host gave."""

UNKNOWN_HOST = "unknown-host"
"""Its value where the host was not recorded."""
