"""Debian's package index as a directory: homepages under sections and tags."""

import lzma

from focused.directory.directory_entry import DirectoryEntry, SkippedRecords
from focused.directory.package_index import MAX_STANZA_CHARS, read_package_index

STELLARIUM = """\
Package: stellarium
Version: 1.2
Section: contrib/science
Description: real-time photo-realistic sky generator
 Stellarium renders 3D
 skies.
 .
 It has:
  * stars,
Homepage: https://stellarium.org
Tag: field::astronomy, interface::graphical, special::not-yet-tagged,
 works-with::image:raster, field::astronomy

"""
BARE = "Package: bare\nSection: utils\nDescription: no home\n\n"


def read(tmp_path, text, name="Packages"):
    path = tmp_path / name
    path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())
    passed_over = SkippedRecords()
    return list(read_package_index(path, passed_over)), passed_over.messages()


def test_a_package_is_a_sample_of_its_section_and_of_each_tag(tmp_path):
    entries, messages = read(tmp_path, STELLARIUM)
    assert [entry.category for entry in entries] == [
        "Top/Section/science",
        "Top/Tag/field/astronomy",
        "Top/Tag/interface/graphical",
        "Top/Tag/works-with/image/raster",
    ]
    assert messages == ()


def test_homepage_name_summary_and_long_description_are_the_sample(tmp_path):
    entries, _ = read(tmp_path, STELLARIUM)
    assert entries[0] == DirectoryEntry(
        "Top/Section/science",
        "https://stellarium.org/",
        "stellarium: real-time photo-realistic sky generator",
        "Stellarium renders 3D skies. It has: * stars,",
    )


def test_packages_without_a_homepage_are_counted(tmp_path):
    entries, messages = read(tmp_path, BARE + STELLARIUM + BARE)
    assert len(entries) == 4
    assert messages == ("Packages: 2 packages without a homepage on the Web",)


def test_the_description_in_english_of_apt_cache_show_is_read(tmp_path):
    shown = STELLARIUM.replace("Description:", "Description-en:")
    assert read(tmp_path, shown) == read(tmp_path, STELLARIUM)


def test_a_compressed_index_that_is_cut_off_is_counted(tmp_path):
    path = tmp_path / "Packages.xz"
    path.write_bytes(lzma.compress((STELLARIUM * 50).encode())[:-20])
    passed_over = SkippedRecords()
    for entry in read_package_index(path, passed_over):
        assert entry.url == "https://stellarium.org/"
    (remark,) = passed_over.messages()
    assert "cut off or damaged" in remark


def test_stanzas_and_bytes_that_are_no_packages_do_not_stop_the_reading(tmp_path):
    path = tmp_path / "Packages"
    path.write_bytes(b"Origin: x\n\n continued\n\nno colon\xff\n\n" + STELLARIUM.encode())
    passed_over = SkippedRecords()
    assert len(list(read_package_index(path, passed_over))) == 4
    assert passed_over.messages() == ("Packages: 2 stanzas that are not a package",)


def test_of_a_stanza_without_an_end_no_more_is_kept_than_fits(tmp_path):
    more = f" {'more ' * 100_000}\n"
    endless = f"Package: a\nHomepage: https://a.example/\nDescription: x\n{more * 40}"
    assert len(endless) > MAX_STANZA_CHARS
    found, _ = read(tmp_path, f"{endless}Section: late\n\n{STELLARIUM}")
    assert {entry.url for entry in found} == {"https://stellarium.org/"}
    assert len(found) == 4
