"""Debian's package index as a web; sections become labels and are on no page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import RecordedWebError
from focused_lab.builders.debian_packages import PackageIndex, parse_index, parse_relation
from focused_lab.builders.debian_site import (
    HOME,
    build_debian_site,
    choose_packages,
    debian_labels,
    debian_pages,
    maintainer_url,
    package_url,
    source_url,
)
from focused_lab.recorded_web.recorded_web import RecordedWeb
from tests.support.recorded_web import body

TEAM = "Board Team <boards@example.org>"


def stanza(name: str, section: str = "games", summary: str = "", *more: str) -> str:
    fields = [f"Package: {name}", f"Section: {section}", f"Description: {summary or name}"]
    if not any(line.startswith("Maintainer:") for line in more):
        fields.append("Maintainer: Ann <ann@example.org>")
    return "\n".join([*fields, *more]) + "\n\n"


CHESS = stanza(
    "chess",
    "games",
    "a <board> to play on",
    f"Maintainer: {TEAM}",
    "Source: chess-suite (1.2)",
    "Depends: chess-data (>= 1), libc6 (>= 2.34) | musl:any, chess",
    "Pre-Depends: dpkg",
    "Enhances: go",
).replace(
    "to play on",
    "to play on\n You play\n white.\n .\n Features:\n  * clocks,\n  * a teacher.\n .\n Have fun.",
)
CHESS_DATA = stanza("chess-data", "games", "pictures", f"Maintainer: {TEAM}", "Source: chess-suite")
GO = stanza("go", "contrib/games", "stones")
GREP = stanza("grep", "utils", "find lines", "Maintainer: Bob <bob@example.org>")
INDEX = CHESS + CHESS_DATA + GO + GREP


@pytest.fixture
def pages() -> dict[str, str]:
    """What stands on the pages, by URL."""
    return {page.url: page.body for page in debian_pages(parse_index(INDEX))}


def test_a_stanza_becomes_a_package():
    chess = parse_index(INDEX)["chess"]
    assert (chess.source, chess.section, chess.summary) == (
        "chess-suite",
        "games",
        "a <board> to play on",
    )
    assert (chess.maintainer, chess.maintainer_address) == ("Board Team", "boards@example.org")


def test_a_long_description_is_paragraphs_and_points():
    assert parse_index(INDEX)["chess"].paragraphs == (
        "You play white.",
        "Features:",
        "* clocks,",
        "* a teacher.",
        "Have fun.",
    )


def test_the_translated_description_counts_more():
    text = stanza("go", "games", "short", "Description-en: short", " and long.")
    assert parse_index(text)["go"].paragraphs == ("and long.",)


def test_the_part_of_the_archive_is_not_a_section():
    assert parse_index(GO)["go"].section == "games"


@pytest.mark.parametrize("lacking", ["Package", "Section", "Maintainer"])
def test_stanzas_that_lack_what_a_page_needs_are_skipped(lacking):
    text = "\n".join(line for line in GO.splitlines() if not line.startswith(lacking))
    assert parse_index(text) == {}


def test_of_several_versions_the_first_counts():
    assert parse_index(GO + stanza("go", "net"))["go"].section == "games"


@given(text=st.text())
def test_any_text_is_an_index(text):
    assert all(name for name in parse_index(text + "\n\n" + GO))


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", ()),
        ("aa (>= 1), bb", ("aa", "bb")),
        ("aa | bb:any, aa (<< 3), g++", ("aa", "bb", "g++")),
        ("self, aa [amd64]", ("aa",)),
        ("${misc:Depends}", ()),
    ],
)
def test_relations_are_names_each_once(value, names):
    assert parse_relation(value, "self") == tuple(names)


def test_the_web_holds_what_people_run():
    text = GO + GREP + stanza("go-dev", "libdevel") + stanza("golang-x", "golang")
    assert choose_packages(parse_index(text)) == ["go", "grep"]


def test_transitional_packages_are_excluded():
    text = GO + stanza("go-old", "games", "Transitional package for go")
    assert choose_packages(parse_index(text)) == ["go"]


def test_libraries_that_ten_packages_need_belong_to_the_web():
    users = [
        stanza(f"game{number}", "games", "", "Depends: libboard" + (", librare" * (number < 9)))
        for number in range(10)
    ]
    text = "".join(users) + stanza("libboard", "libs") + stanza("librare", "libs")
    chosen = choose_packages(parse_index(text))
    assert "libboard" in chosen
    assert "librare" not in chosen


def test_sections_are_labels_of_packages_and_of_sources_of_one_section():
    mixed = stanza("go-doc", "doc", "", "Source: go")
    assert debian_labels(parse_index(INDEX + mixed)) == [
        (package_url("chess"), "Top/Software/Games"),
        (package_url("chess-data"), "Top/Software/Games"),
        (package_url("go"), "Top/Software/Games"),
        (package_url("go-doc"), "Top/Software/Doc"),
        (package_url("grep"), "Top/Software/Utils"),
        (source_url("chess-suite"), "Top/Software/Games"),
    ]


def test_the_section_is_on_no_page():
    for page in debian_pages(parse_index(INDEX)):
        shown = f"{page.url} {page.title} {page.body}".casefold()
        assert "games" not in shown
        assert "utils" not in shown


def test_relations_are_links_with_what_they_lead_to(pages):
    page = pages[package_url("chess")]
    data = f'<a href="{package_url("chess-data")}">chess-data</a> pictures'
    assert f"<h2>Depends</h2>\n<ul>\n<li>{data}</li>\n</ul>" in page
    assert f'<h2>Enhances</h2>\n<ul>\n<li><a href="{package_url("go")}">go</a> stones</li>' in page


def test_packages_out_of_the_web_are_not_linked(pages):
    assert "libc6" not in pages[package_url("chess")]


def test_packages_of_one_source_are_linked_and_so_is_the_source(pages):
    page = pages[package_url("chess-data")]
    assert f'href="{package_url("chess")}"' in page.partition("From the same source")[2]
    assert f'Source: <a href="{source_url("chess-suite")}">chess-suite</a>' in page
    assert f'href="{package_url("chess")}"' in pages[source_url("chess-suite")]


def test_a_source_of_one_package_has_no_page(pages):
    assert source_url("grep") not in pages
    assert "Source: grep." in pages[package_url("grep")]


def test_maintainers_of_several_packages_have_pages(pages):
    team = maintainer_url("boards@example.org")
    assert f'<a href="{team}">Board Team</a>' in pages[package_url("chess")]
    assert f'href="{package_url("chess-data")}"' in pages[team]
    assert maintainer_url("bob@example.org") not in pages


def test_text_is_escaped(pages):
    assert "a &lt;board&gt; to play on" in pages[package_url("chess")]


def test_every_package_can_be_reached_from_the_home_page(pages):
    assert f'href="{HOME}contents/c.html"' in pages[HOME]
    assert f'href="{package_url("chess")}"' in pages[f"{HOME}contents/c.html"]


def test_libraries_have_shelves_by_four_letters():
    pages = debian_pages(parse_index(stanza("libgo") + stanza("lib") + stanza("less")))
    shelves = [page.url for page in pages if "/contents/" in page.url]
    assert shelves == [f"{HOME}contents/l.html", f"{HOME}contents/libg.html"]


def test_the_lists_become_a_labelled_web_and_are_kept(tmp_path, debian):
    (debian.archive / "Packages.new").write_text(INDEX)
    built = build_debian_site(tmp_path / "web", tmp_path / "cache", lambda line: None)
    assert (built.fresh, built.pages, built.hosts) == (True, 9, 3)
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.labels[package_url("grep")] == {"Top/Software/Utils"}
        assert "You play white." in body(web, package_url("chess"))
    assert not build_debian_site(tmp_path / "web", tmp_path / "cache", lambda line: None).fresh
    build_debian_site(tmp_path / "other", tmp_path / "cache", lambda line: None)
    assert len(debian.calls("apt-get")) == 1


def test_the_machines_own_lists_stay_as_they_are(tmp_path, debian):
    (debian.archive / "Packages.new").write_text(INDEX)
    PackageIndex(tmp_path / "lists", lambda line: None).packages()
    for call in [*debian.calls("apt-get"), *debian.calls("apt-cache")]:
        assert f"Dir::State::Lists={tmp_path / 'lists'}" in call
        assert "Dir::Cache::pkgcache= " in call


@pytest.mark.usefixtures("debian")
def test_without_package_lists_the_error_says_what_to_do(tmp_path):
    with pytest.raises(RecordedWebError, match="check the network"):
        PackageIndex(tmp_path / "lists", lambda line: None)
    assert not (tmp_path / "lists").exists()
