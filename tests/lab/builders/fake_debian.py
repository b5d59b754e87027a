"""A Debian of a few tiny packages: stand-ins for apt-cache, apt-get and dpkg-deb.

The tools are found on PATH and read an archive folder: ``NAME.deb`` files (tar
files, in truth) and ``Packages``, the stanzas that ``apt-cache show`` and
``dumpavail`` print.
Each call is written to ``calls``.
"""

import hashlib
import io
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

_TOOL = """#!{python}
import pathlib, shutil, sys, tarfile
archive = pathlib.Path({archive!r})
tool = pathlib.Path(sys.argv[0]).name
with (archive / "calls").open("a") as calls:
    print(tool, *sys.argv[1:], file=calls)
names = [word for word in sys.argv[1:] if not word.startswith("-") and "=" not in word]
if tool == "apt-cache" and names == ["dumpavail"]:
    print((archive / "Packages").read_text())
elif tool == "apt-cache":
    stanzas = (archive / "Packages").read_text().split("\\n\\n")
    print("\\n\\n".join(s for s in stanzas if s.split("\\n")[0][9:] in names[1:]))
elif tool == "apt-get" and names[0] == "update":
    shutil.copy(archive / "Packages.new", archive / "Packages")
    for option in sys.argv[1:]:
        if option.startswith("Dir::State::Lists="):
            shutil.copy(archive / "Packages.new", option.partition("=")[2] + "/fake_Packages")
elif tool == "apt-get":
    for name in names[1:]:
        shutil.copy(archive / f"{{name}}.deb", f"{{name}}_1%3a2.0-1_all.deb")
else:
    with tarfile.open(sys.argv[2]) as deb:
        deb.extractall(sys.argv[3], filter="tar")
"""


class FakeDebian:
    """The stand-ins; packages are added with their files by path in the package."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.archive = folder / "archive"
        self.archive.mkdir(parents=True)
        (self.archive / "Packages").write_text("")
        (self.archive / "calls").write_text("")
        tools = folder / "bin"
        tools.mkdir()
        for name in ("apt-cache", "apt-get", "dpkg-deb"):
            tool = tools / name
            tool.write_text(_TOOL.format(python=sys.executable, archive=str(self.archive)))
            tool.chmod(0o755)
        patch.setenv("PATH", str(tools))
        self.is_root = False
        patch.setattr("os.geteuid", lambda: 0 if self.is_root else 1000)

    def add(self, name: str, files: Mapping[str, bytes], lists: str = "Packages") -> None:
        """Put a package into the archive; ``lists`` names the file that knows of it."""
        deb = self.archive / f"{name}.deb"
        with tarfile.open(deb, "w") as tar:
            for path, content in files.items():
                member = tarfile.TarInfo(path.lstrip("/"))
                member.size = len(content)
                member.mtime = 1_600_000_000
                tar.addfile(member, io.BytesIO(content))
        content = deb.read_bytes()
        with (self.archive / lists).open("a") as stanzas:
            stanzas.write(
                f"Package: {name}\nVersion: 1:2.0-1\nArchitecture: all\n"
                f"Description: tiny\n Size: not a field\nSize: {len(content)}\n"
                f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
            )

    def calls(self, tool: str) -> list[str]:
        """How a tool was called so far, the tool's name left out."""
        lines = (self.archive / "calls").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(tool + " ")]
