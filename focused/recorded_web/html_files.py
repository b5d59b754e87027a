"""Files of HTML as pages: their URL paths, contents and headers."""

from __future__ import annotations

import gzip
import re
import zlib
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from focused.recorded_web.web_index import INDEX_PAGE

PAGE_NAME = re.compile(r"\.x?html?(?:\.gz)?$", re.IGNORECASE)


def is_page_name(name: str) -> bool:
    """Whether a file name is that of HTML."""
    return PAGE_NAME.search(name) is not None


def page_path(relative: PurePosixPath) -> str:
    """Return the URL path of a file: percent-encoded, without ``.gz`` and ``index.html``."""
    path = str(relative).removesuffix(".gz")
    if relative.name.removesuffix(".gz") == INDEX_PAGE:
        path = path.removesuffix(INDEX_PAGE)
    return quote(path, safe="/~+,;=:@!$'()*&")


def read_html(file: Path) -> bytes:
    """Return a file's bytes, decompressed; raises OSError."""
    body = file.read_bytes()
    try:
        return gzip.decompress(body) if file.name.lower().endswith(".gz") else body
    except (EOFError, zlib.error) as error:
        raise OSError(f"{file}: {error}") from error


def page_headers(body: bytes, modified: datetime) -> dict[str, str]:
    """Return the headers of a static page; the charset only if the body is valid UTF-8."""
    try:
        body.decode("utf-8")
        content_type = "text/html; charset=utf-8"
    except UnicodeDecodeError:
        content_type = "text/html"
    return {
        "content-type": content_type,
        "last-modified": modified.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    }


def modified_at(file: Path) -> datetime:
    """Return when the file was last changed, in UTC."""
    return datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
