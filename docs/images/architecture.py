"""Draw the packages by layer: ``python docs/images/architecture.py``.

The layers are those of the import contract in ``pyproject.toml``, which ``make lint`` checks.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_suffix(".svg")
WIDTH, ROW, BOX, GAP, MARGIN = 1000, 34, 26, 8, 12


def layers() -> list[list[str]]:
    """Return the packages and modules of each layer, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def draw() -> str:
    """Return the picture as SVG."""
    rows = layers()
    height = len(rows) * ROW + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" role="img">',
        "<title>The packages by layer: a package imports from lower layers only</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for place, names in enumerate(rows):
        y = MARGIN + place * ROW
        width = (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)
        for number, name in enumerate(names):
            x = MARGIN + number * (width + GAP)
            parts.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="4" '
                'fill="#e8eef7" stroke="#46628c"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + 17}" text-anchor="middle">'
                f"{escape(name.removeprefix('focused.'))}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
