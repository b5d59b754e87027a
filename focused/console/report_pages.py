"""Reports of comparisons in the console: found beside the crawls, shown without scripts."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

REPORT_FILE = "report.html"
_POLICY = (
    "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ReportPages:
    """Serves reports at addresses that cannot be guessed: a tab sends no token."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots
        self._key = secrets.token_bytes(32)

    def find_all(self) -> list[dict[str, str]]:
        """Return the folder and the path of each report."""
        return [
            {"folder": str(file.parent), "path": f"/report/{self._name(file)}"}
            for file in self._files()
        ]

    async def send(self, request: web.Request) -> web.Response:
        """Send the report of an address; it may run no script and load nothing."""
        wanted = request.match_info["name"]
        for file in self._files():
            if hmac.compare_digest(self._name(file).encode(), wanted.encode("utf-8", "replace")):
                return web.Response(
                    body=file.read_bytes(),
                    content_type="text/html",
                    charset="utf-8",
                    headers={"Content-Security-Policy": _POLICY},
                )
        raise web.HTTPNotFound(text="There is no such report.")

    def _files(self) -> list[Path]:
        found = []
        for root in self._roots:
            found += [root / REPORT_FILE, *sorted(root.glob(f"*/{REPORT_FILE}"))]
        return [file for file in dict.fromkeys(found) if file.is_file()]

    def _name(self, file: Path) -> str:
        return hmac.new(self._key, str(file).encode(), hashlib.sha256).hexdigest()
