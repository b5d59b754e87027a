"""MkDocs hooks: fill the list of decisions, and mend links that leave the docs folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def on_config(config: Any) -> Any:
    """List every decision record in the navigation."""
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    for part in config.nav:
        if isinstance(part, dict) and "Decisions" in part:
            part["Decisions"] = [str(file.relative_to(DOCS)) for file in decisions]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Link files outside the docs folder to the repository; without one, name them."""
    folder = (DOCS / page.file.src_uri).parent

    def mended(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", path):
            return match[0]
        target = Path(os.path.normpath(folder / path))
        if target.suffix == ".md" and target.is_relative_to(DOCS):
            return match[0]
        name = target.relative_to(ROOT)
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{name}{anchor})"
        return text if text.strip("`") == name.name else f"{text} (`{name}`)"

    return LINK.sub(mended, markdown)
