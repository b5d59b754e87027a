"""Pages kept beside the labels: whole, once, and readable without the crawl."""

from pathlib import Path

import pytest

from focused.errors import LabelError
from focused.labels.label_file import LabelledPageStore, labelled_page_reader, labelled_pages_path
from focused.web.page import Fetched
from focused.web.warc_reader import WarcResponse, read_responses
from tests.support.made_documents import pdf


def fetched(number: int) -> Fetched:
    html = f"<title>Page {number}</title><p>words of page {number}</p>"
    headers = {"content-type": "text/html; charset=utf-8"}
    return Fetched(f"https://a.example/{number}", 200, headers, html.encode())


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return tmp_path / "whales.labels.jsonl"


def urls(path: Path) -> list[str]:
    return [one.url for one in read_responses(path) if isinstance(one, WarcResponse)]


def test_a_kept_page_can_be_read_again_without_the_crawl(labels):
    path = labelled_pages_path(labels)
    assert path.name == "whales.labels.warc.gz"
    with LabelledPageStore(path) as kept:
        kept.append(fetched(1), at=2.0)
        assert fetched(1).url in kept
    page = labelled_page_reader(labels)("https://a.example/1")
    assert page is not None
    assert (page.title, page.text) == ("Page 1", "words of page 1")
    assert labelled_page_reader(labels)("https://a.example/2") is None


def test_a_kept_document_can_be_read_again(labels):
    paper = Fetched("https://a.example/x.pdf", 200, {}, pdf(["words of a paper"]))
    with LabelledPageStore(labelled_pages_path(labels)) as kept:
        kept.append(paper, at=2.0)
    page = labelled_page_reader(labels)(paper.url)
    assert page is not None
    assert page.text.strip() == "words of a paper"


def test_without_kept_pages_none_is_found(labels):
    assert labelled_page_reader(labels)("https://a.example/1") is None


def test_a_page_is_kept_once_across_sessions(labels):
    path = labelled_pages_path(labels)
    for _ in range(2):
        with LabelledPageStore(path) as kept:
            kept.append(fetched(1), at=2.0)
            kept.append(fetched(1), at=3.0)
    assert urls(path) == [fetched(1).url]


def test_a_record_cut_off_at_any_byte_is_cut_away_and_the_others_stay(labels):
    path = labelled_pages_path(labels)
    lengths = []
    with LabelledPageStore(path) as kept:
        for number in range(3):
            kept.append(fetched(number), at=2.0)
            lengths.append(path.stat().st_size)
    whole = path.read_bytes()
    for cut in range(lengths[1], lengths[2]):
        path.write_bytes(whole[:cut])
        with LabelledPageStore(path) as kept:
            kept.append(fetched(3), at=2.0)
        assert urls(path) == [fetched(n).url for n in (0, 1, 3)]


def test_damage_in_the_middle_costs_no_page_behind_it(labels):
    path = labelled_pages_path(labels)
    with LabelledPageStore(path) as kept:
        kept.append(fetched(0), at=2.0)
        first = path.stat().st_size
        kept.append(fetched(1), at=2.0)
    content = bytearray(path.read_bytes())
    content[first // 2] ^= 0xFF
    path.write_bytes(content)
    with LabelledPageStore(path) as kept:
        kept.append(fetched(2), at=2.0)
    assert set(urls(path)) >= {fetched(1).url, fetched(2).url}


def test_a_file_that_cannot_be_opened_raises_an_error(tmp_path):
    with pytest.raises(LabelError, match="cannot be opened"):
        LabelledPageStore(tmp_path)
