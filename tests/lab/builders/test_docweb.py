"""Building the documentation web, with stand-ins for Debian's tools."""

from collections.abc import Callable
from pathlib import Path

import pytest

from focused.errors import RecordedWebError
from focused_lab.builders.built_web import BuiltWeb
from focused_lab.builders.debian_packages import fetch_packages, parse_packages, unpack
from focused_lab.builders.docweb import build_docweb
from focused_lab.recorded_web.recorded_web import RecordedWeb

OS = "/usr/share/doc/python3.11/html/library/os.html"
HOME = "/usr/share/doc/python3.11/html/index.html"
Build = Callable[..., BuiltWeb]
FLASK = "/usr/share/doc/python-flask-doc/html/index.html"


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def build(tmp_path: Path, lines: list[str]) -> Build:
    def run(folder: str = "web", tier: str = "small", cache: str = "cache") -> BuiltWeb:
        return build_docweb(tmp_path / folder, tier, tmp_path / cache, lines.append)

    return run


def test_a_tier_is_built_from_the_packages_there_are(debian, tmp_path, lines, build):
    debian.add("python3.11-doc", {HOME: b"home", OS: b"os"})
    debian.add("python-flask-doc", {FLASK: b'<a href="http://docs.python.org/library/os">os</a>'})
    built = build()
    assert (built.fresh, built.pages, built.redirects, built.hosts) == (True, 3, 1, 2)
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.details["tier"] == "small"
        assert web.status("http://docs.python.org/library/os") == 301
    assert any("python3.11-doc: 2 pages" in line for line in lines)
    assert any("left out" in line and "slurm-wlm-doc" in line for line in lines)


def test_the_same_packages_make_the_same_file(debian, tmp_path, build):
    debian.add("python3.11-doc", {HOME: b"home"})
    debian.add("python-flask-doc", {FLASK.replace("index", "guide"): b"no index page"})
    for name in ("one", "two"):
        build(name, cache=f"{name}-cache")
    one, two = (tmp_path / name / "pages.warc.gz" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_a_second_build_touches_nothing(debian, tmp_path, build):
    debian.add("python3.11-doc", {HOME: b"home"})
    first = build()
    before = (tmp_path / "web/pages.warc.gz").stat()
    calls = debian.calls("apt-cache")
    second = build()
    assert not second.fresh
    assert (second.pages, second.hosts) == (first.pages, first.hosts)
    assert (tmp_path / "web/pages.warc.gz").stat() == before
    assert debian.calls("apt-cache") == calls


def test_another_tier_is_built_anew(debian, build):
    debian.add("python3.11-doc", {HOME: b"home"})
    build()
    assert build(tier="full").fresh


def test_packages_are_downloaded_once(debian, build):
    debian.add("python3.11-doc", {HOME: b"home"})
    build("one")
    build("two")
    assert len(debian.calls("apt-get")) == 1


def test_a_download_that_was_cut_is_made_again(debian, tmp_path, lines):
    debian.add("python3.11-doc", {HOME: b"home"})
    deb = fetch_packages(["python3.11-doc"], tmp_path, lines.append)["python3.11-doc"]
    whole = deb.read_bytes()
    deb.write_bytes(whole[:-1])
    fetch_packages(["python3.11-doc"], tmp_path, lines.append)
    assert deb.read_bytes() == whole


def test_nothing_unpacked_is_left_in_the_cache(debian, tmp_path, build):
    debian.add("python3.11-doc", {HOME: b"home"})
    build()
    assert not list(tmp_path.glob("cache/unpacked/*"))


def test_an_unknown_tier_is_an_error_that_names_the_known_ones(build):
    with pytest.raises(RecordedWebError, match=r"'huge'.*small, medium, full"):
        build(tier="huge")


def test_without_apt_the_error_says_what_to_do_instead(tmp_path, monkeypatch, build):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RecordedWebError, match=r"apt-get.*focused web import"):
        build()
    assert not (tmp_path / "web").exists()


def test_without_package_lists_the_error_says_to_update(debian, build):
    with pytest.raises(RecordedWebError, match="apt-get update"):
        build()
    assert debian.calls("apt-get") == []


def test_root_updates_the_package_lists_by_itself(debian, tmp_path, lines):
    debian.is_root = True
    debian.add("python3.11-doc", {HOME: b"home"}, lists="Packages.new")
    assert fetch_packages(["python3.11-doc"], tmp_path, lines.append)
    assert debian.calls("apt-get")[0] == "-q update"


def test_a_failed_download_is_an_error_with_apts_last_words(debian, tmp_path):
    debian.add("python3.11-doc", {HOME: b"home"})
    (debian.archive / "python3.11-doc.deb").unlink()
    with pytest.raises(RecordedWebError, match=r"apt-get download failed .*FileNotFoundError"):
        fetch_packages(["python3.11-doc"], tmp_path, print)


def test_a_download_that_is_not_what_was_announced_is_an_error(debian, tmp_path):
    debian.add("python3.11-doc", {HOME: b"home"})
    (debian.archive / "python3.11-doc.deb").write_bytes(b"something else")
    with pytest.raises(RecordedWebError, match=r"no intact python3\.11-doc_"):
        fetch_packages(["python3.11-doc"], tmp_path, print)


def test_a_damaged_package_is_an_error_that_names_it(debian, tmp_path):
    deb = debian.archive / "broken.deb"
    deb.write_bytes(b"no archive")
    with pytest.raises(RecordedWebError, match=r"broken\.deb cannot be unpacked"):
        unpack(deb, tmp_path / "unpacked")


def test_of_several_versions_the_first_counts():
    stanza = "Package: a\nVersion: {}\nSize: 5\nSHA256: 00\n\n"
    packages = parse_packages(stanza.format("2") + stanza.format("1"))
    assert packages["a"].version == "2"


def test_a_stanza_without_a_file_is_not_a_package():
    assert parse_packages("Package: virtual\nVersion: 1\n") == {}
