"""The nominal speed of the machine's network, with which a crawl's bandwidth is compared."""

from __future__ import annotations

from pathlib import Path

_DEFAULT_ROUTE = "00000000"


def interface_mbit(root: Path = Path("/")) -> float | None:
    """Return the speed of the interface with the default route in Mbit/s; None if unknown.

    Linux tells it of wired interfaces only, and of some virtual ones. ``root`` is the folder with
    ``proc`` and ``sys``.
    """
    try:
        routes = (root / "proc/net/route").read_text().splitlines()[1:]
        name = next(
            fields[0]
            for fields in map(str.split, routes)
            if len(fields) > 1 and fields[1] == _DEFAULT_ROUTE
        )
        speed = int((root / f"sys/class/net/{name}/speed").read_text())
    except (OSError, ValueError, StopIteration):
        return None
    return float(speed) if speed > 0 else None
