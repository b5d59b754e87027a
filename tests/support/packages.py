"""Packages that tests install."""

from pathlib import Path


def install(folder: Path, module: str, code: str, entry_points: str) -> None:
    """Install a distribution of one module into a folder, as pip does."""
    (folder / f"{module}.py").write_text(code)
    details = folder / f"{module}-1.0.dist-info"
    details.mkdir(exist_ok=True)
    (details / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (details / "entry_points.txt").write_text(entry_points)
