"""A folder of saved pages: sub-folders are categories, pages come from disk."""

import os

import pytest

from focused.directory import SkippedRecords
from focused.directory.sample_files import load_sample_page, read_page_folder
from focused.errors import ConfigurationError


def saved(folder, name, content="<title>Brie</title><p>A soft cheese</p>"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def read(folder, passed_over=None):
    return list(read_page_folder(folder, passed_over or SkippedRecords()))


def test_the_path_of_folders_is_the_category(tmp_path):
    saved(tmp_path, "Food/Cheese/brie.html")
    saved(tmp_path, "Other/garden.txt", "Tulips")
    assert [entry.category for entry in read(tmp_path)] == ["Food/Cheese", "Other"]


def test_a_page_is_read_from_disk_and_never_fetched(tmp_path):
    saved(tmp_path, "Food/brie.html")
    (entry,) = read(tmp_path)
    page = load_sample_page(entry)
    assert not entry.needs_fetch
    assert (page.url, page.title, page.text) == (entry.url, "Brie", "A soft cheese")


def test_a_text_file_is_a_page_without_markup(tmp_path):
    saved(tmp_path, "Food/brie.txt", "A <soft> cheese")
    (entry,) = read(tmp_path)
    assert load_sample_page(entry).text == "A <soft> cheese"


def test_the_same_page_in_two_folders_is_one_page(tmp_path):
    saved(tmp_path, "Food/brie.html")
    saved(tmp_path, "Other/copy.html")
    saved(tmp_path, "Other/other.html", "<p>Tulips</p>")
    brie, copy, other = read(tmp_path)
    assert brie.url == copy.url != other.url


@pytest.mark.parametrize(
    "comment",
    [
        "<!-- saved from url=(0029)https://cheese.example/brie#x -->",
        "<!--\n Page saved with SingleFile \n url: https://cheese.example/brie \n saved date: -->",
    ],
)
def test_a_saved_page_keeps_its_original_address(tmp_path, comment):
    saved(tmp_path, "Food/brie.html", f"<!DOCTYPE html>\n{comment}<p>A soft cheese</p>")
    (entry,) = read(tmp_path)
    assert (entry.url, entry.needs_fetch) == ("https://cheese.example/brie", False)


def test_what_a_browser_saved_beside_a_page_is_no_page(tmp_path):
    saved(tmp_path, "Food/brie.html")
    saved(tmp_path, "Food/brie_files/frame.html")
    saved(tmp_path, "Food/hard_cheese/gouda.html", "<p>Gouda</p>")
    assert [entry.file.name for entry in read(tmp_path)] == ["brie.html", "gouda.html"]


def test_files_that_are_no_pages_are_counted(tmp_path):
    saved(tmp_path, "Food/brie.html")
    saved(tmp_path, "Food/brie.pdf")
    saved(tmp_path, "Food/.hidden.html")
    passed_over = SkippedRecords()
    assert len(read(tmp_path, passed_over)) == 1
    (remark,) = passed_over.messages()
    assert remark == f"{tmp_path.name}: 1 files that are not pages (.html, .htm, .xhtml, .txt)"


def test_a_page_outside_of_all_categories_is_an_error_that_names_it(tmp_path):
    saved(tmp_path, "brie.html")
    with pytest.raises(ConfigurationError, match=r"brie\.html: is in no category"):
        read(tmp_path)


def test_a_folder_that_links_to_itself_is_read_once(tmp_path):
    saved(tmp_path, "Food/brie.html")
    (tmp_path / "Food" / "again").symlink_to(tmp_path / "Food")
    assert len(read(tmp_path)) == 1


def test_a_page_that_is_empty_or_gone_has_no_text(tmp_path):
    saved(tmp_path, "Food/empty.html", "")
    saved(tmp_path, "Food/gone.html")
    empty, gone = read(tmp_path)
    gone.file.unlink()
    assert load_sample_page(empty) is None
    assert load_sample_page(gone) is None


def test_pipes_and_links_out_of_the_folder_are_counted_and_not_read(tmp_path):
    folder = tmp_path / "pages"
    page = saved(folder, "Food/brie.html")
    (folder / "Food" / "alias.html").symlink_to(page)
    (folder / "Food" / "secret.txt").symlink_to(saved(tmp_path, "private/key.txt", "a secret"))
    (folder / "Food" / "gone.html").symlink_to(folder / "nowhere.html")
    os.mkfifo(folder / "Food" / "pipe.html")
    passed_over = SkippedRecords()
    found = read(folder, passed_over)
    assert [entry.file.name for entry in found] == ["alias.html", "brie.html"]
    (remark,) = passed_over.messages()
    assert "3 links that lead out" in remark
