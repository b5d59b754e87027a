"""A session: the pages it shows, stores and estimates from."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from focused.archive.archive import Archive
from focused.archive.parquet import write_parquet_files
from focused.errors import LabelError, StateError
from focused.labelling.labelling_task import read_fetched_pages
from focused.labelling.page_selection import (
    MAX_RESULTS,
    build_training_pool,
    evaluation_queue,
    select_candidates,
)
from focused.labelling.session import (
    EVALUATION_EVERY,
    LabellingSession,
    format_counts,
    format_reason,
)
from focused.labels.label_file import (
    LabelFile,
    LabelledPageStore,
    evaluation_hash,
    labelled_page_reader,
    labelled_pages_path,
    read_labels,
    role_of,
)
from focused.parser_process import ParsingLimits
from focused.storage.state_store import StateStore
from focused.web.html.parse import MAX_QUICK_BYTES
from tests.labelling.labelled_crawls import page_row, session, task, url_of, write_crawl


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LabelFile]:
    with LabelFile(tmp_path / "l.labels.jsonl") as opened:
        yield opened


def label_all(asking: LabellingSession, count: int, at: float = 1.0) -> list[str]:
    """Answer ``count`` pages, yes to even ones; their URLs."""
    asked = []
    for _ in range(count):
        shown = asking.current()
        if shown is None:
            break
        number = int(shown.page.url.rsplit("/", 1)[1])
        asking.answer(shown.page.url, "yes" if number % 2 == 0 else "no", "", at)
        asked.append(shown.page.url)
    return asked


def test_one_page_in_three_is_drawn_from_the_evaluation_set(crawl, file):
    asking = session(crawl, file)
    label_all(asking, 12)
    evaluated = [one for one in file.labels if one.role == "evaluation"]
    assert len(evaluated) == 12 // EVALUATION_EVERY
    assert {one.reason for one in evaluated} == {"random"}
    lots = [evaluation_hash(one.url) for one in evaluated]
    assert lots == sorted(lots)
    drawn = [page.url for page in evaluation_queue(read_fetched_pages(crawl))]
    assert [one.url for one in evaluated] == drawn[: len(evaluated)]


def test_a_label_has_the_role_of_its_page_wherever_it_was_shown(crawl, file):
    asking = session(crawl, file)
    for number in range(20):
        asking.answer(url_of(number), "yes", "", 1.0)
    assert {one.role for one in file.labels} == {"evaluation", "training"}
    assert all(one.role == role_of(one.url) for one in file.labels)


def test_all_pages_are_asked_about_once_and_then_none(crawl, file):
    asked = label_all(session(crawl, file), 100)
    assert sorted(asked) == sorted(url_of(n) for n in range(60))


def test_the_page_shown_stays_until_it_is_answered(crawl, file):
    asking = session(crawl, file)
    assert asking.current() == asking.current()
    shown = asking.current()
    assert shown is not None
    other = next(url_of(n) for n in range(60) if url_of(n) != shown.page.url)
    asking.answer(other, "no", "", 1.0)  # from another window
    assert asking.current() == shown
    asking.answer(shown.page.url, "no", "", 1.0)
    assert asking.current() != shown


def test_undo_shows_the_page_again_and_removes_its_label(crawl, file):
    asking = session(crawl, file)
    first, second = label_all(asking, 2)
    assert asking.undo(2.0) is not None
    shown = asking.current()
    assert shown is not None
    assert shown.page.url == second
    assert [one.url for one in file.labels] == [first]
    asking.undo(3.0)
    assert asking.undo(4.0) is None
    assert asking.progress().yes + asking.progress().no == 0


def test_a_session_begun_anew_goes_on_where_the_last_one_was(crawl, file):
    asked = label_all(session(crawl, file), 10)
    again = session(crawl, file)
    shown = again.current()
    assert shown is not None
    assert shown.page.url not in asked
    assert again.progress() == session(crawl, file).progress()
    assert again.undo(1.0) is not None


def test_what_teaches_changes_no_estimate(crawl, file):
    asking = session(crawl, file)
    label_all(asking, 15)
    before = asking.progress()
    for number in range(60):
        if role_of(url_of(number)) == "training":
            asking.answer(url_of(number), "yes", "", 1.0)
    after = asking.progress()
    assert (after.precision, after.harvest) == (before.precision, before.harvest)
    assert before.precision is not None
    assert before.harvest is not None


def test_skipped_pages_are_counted_and_estimate_nothing(crawl, file):
    asking = session(crawl, file)
    for _ in range(12):
        shown = asking.current()
        assert shown is not None
        asking.answer(shown.page.url, "skip", "", 1.0)
    progress = asking.progress()
    assert (progress.skipped, progress.evaluated, progress.precision) == (12, 0, None)


def test_a_foreign_page_or_category_is_refused(crawl, file):
    asking = session(crawl, file)
    with pytest.raises(LabelError, match="not a page of this crawl"):
        asking.answer("https://elsewhere.example/", "yes", "", 1.0)
    with pytest.raises(LabelError, match="not a category"):
        asking.answer(url_of(0), "yes", "Top/Nowhere", 1.0)
    assert file.labels == ()


def test_spam_counts_as_not_good(crawl, file):
    asking = session(crawl, file)
    for _ in range(12):
        shown = asking.current()
        assert shown is not None
        asking.answer(shown.page.url, "spam", "", 1.0)
    progress = asking.progress()
    assert (progress.spam, progress.no, progress.evaluated) == (12, 0, 4)
    assert progress.harvest is not None
    assert progress.harvest.value < 0.5
    assert format_counts(progress) == "0 yes, 0 no, 12 spam, 0 skipped"


def test_labelled_pages_are_kept_and_skipped_ones_are_not(crawl, tmp_path):
    path = tmp_path / "l.labels.jsonl"
    crawled = read_fetched_pages(crawl)
    with LabelFile(path) as file, LabelledPageStore(labelled_pages_path(path)) as kept:
        asking = LabellingSession(
            task(crawl), crawled, build_training_pool(crawled, None), file, kept
        )
        asking.answer(url_of(0), "yes", "Top/Animals/Whales", 1.0)
        asking.answer(url_of(1), "skip", "", 1.0)
    page = labelled_page_reader(path)(url_of(0))
    assert page is not None
    assert page.title == "Page 0"
    assert labelled_page_reader(path)(url_of(1)) is None
    assert read_labels(path)[0].category == "Top/Animals/Whales"


def test_pages_fetched_meanwhile_are_taken_in(tmp_path, file):
    write_crawl(tmp_path, pages=5)
    asking = session(tmp_path, file)
    label_all(asking, 9)
    assert asking.current() is None
    write_crawl(tmp_path, pages=5, first=5)
    crawled = read_fetched_pages(tmp_path)
    asking.refresh(crawled, build_training_pool(crawled, None))
    assert len(label_all(asking, 9)) == 5
    assert asking.progress().pages == 10


def test_duplicates_failures_and_samples_are_never_shown(tmp_path):
    write_crawl(tmp_path, pages=3)
    store = StateStore.open(tmp_path / "state", {})
    archive = Archive(store)
    for seq, changed in enumerate(
        ({"duplicate_of": url_of(0)}, {"training": True}, {"outcome": "failed"}), start=3
    ):
        archive.append(structs.replace(page_row(f"http://a.test/{seq}"), seq=seq, **changed))
    archive.close()
    write_parquet_files(store.tables, tmp_path)
    store.close()
    crawled = read_fetched_pages(tmp_path)
    assert set(crawled.pages) == {url_of(n) for n in range(3)}
    assert crawled.duplicates == 1
    (tmp_path / "state").rename(tmp_path / "gone")  # Parquet alone will do
    assert read_fetched_pages(tmp_path) == crawled


def test_pages_of_all_partitions_are_shown(tmp_path):
    for number in range(2):
        part = tmp_path / f"crawl/partitions/partition-{number:04}"
        part.mkdir(parents=True)
        write_crawl(part, pages=3, first=3 * number)
        (part / "pages.warc.gz").rename(part / f"{part.name}-00001.warc.gz")
    crawled = read_fetched_pages(tmp_path / "crawl")
    assert set(crawled.pages) == {url_of(n) for n in range(6)}


def test_of_many_pages_those_at_the_threshold_and_at_the_top_are_candidates(crawl):
    crawled = read_fetched_pages(crawl)
    chosen = select_candidates(crawled, limit=8)
    teach = [page for page in crawled.pages.values() if role_of(page.url) == "training"]
    assert len(chosen) == 8 < len(teach)
    assert max(teach, key=lambda page: page.relevance) in chosen
    on = min(page.relevance for page in teach if page.on_topic)
    assert min(teach, key=lambda page: abs(page.relevance - on)) in chosen


def test_a_page_whose_record_cannot_be_read_is_left_out(tmp_path):
    write_crawl(tmp_path, pages=10)
    crawled = read_fetched_pages(tmp_path)
    broken = {
        url: structs.replace(page, warc_offset=page.warc_offset + 3)
        for url, page in crawled.pages.items()
    }
    assert build_training_pool(replace(crawled, pages=broken), None).pages == ()


def test_a_page_that_exceeds_the_limits_of_parsing_is_left_out(tmp_path):
    body = "<p>whales" * (MAX_QUICK_BYTES // 8)
    urls = (f"https://long.example/{n}" for n in range(9))
    # Each of them ends a process, and another starts.
    long = dict.fromkeys([url for url in urls if role_of(url) == "training"][:2], body)
    write_crawl(tmp_path, pages=10, bodies=long)
    crawled = read_fetched_pages(tmp_path)
    every = {page.url for page in build_training_pool(crawled, None).pages}
    assert every & long.keys()
    bounded = build_training_pool(crawled, None, parsing_limits=ParsingLimits(cpu_s=0.001))
    assert {page.url for page in bounded.pages} == every - long.keys()


def test_a_folder_that_is_no_crawls_is_reported(tmp_path):
    with pytest.raises(StateError, match="no such folder"):
        read_fetched_pages(tmp_path / "none")
    with pytest.raises(StateError, match="is no crawl's folder"):
        read_fetched_pages(tmp_path)


def test_while_on_topic_pages_are_few_the_shown_page_says_how_many_are_needed(crawl, file):
    asking = session(crawl, file)
    reports = []
    for _ in range(20):
        shown = asking.current()
        assert shown is not None
        if shown.role == "training":
            reports.append((shown.reason, shown.good_pages_needed, format_reason(shown)))
        asking.answer(shown.page.url, "yes" if shown.role == "training" else "no", "", 1.0)
    assert [(reason, good_pages_needed) for reason, good_pages_needed, _ in reports[:5]] == [
        ("high", number) for number in (5, 4, 3, 2, 1)
    ]
    assert "2 more pages on topic needed" in reports[3][2]
    assert "1 more page on topic needed" in reports[4][2]
    assert all(good_pages_needed == 0 for _, good_pages_needed, _ in reports[5:])


def test_a_word_of_the_title_the_address_or_the_text_finds_pages(crawl, file):
    asking = session(crawl, file)
    teaching = {url_of(n) for n in range(60) if role_of(url_of(n)) == "training"}
    by_text = {page.url for page in asking.search("baleen")}
    assert by_text and by_text <= teaching & {url_of(n) for n in range(0, 60, 2)}
    assert len(asking.search("h1 example")) > 0
    assert len(asking.search("pag")) == MAX_RESULTS
    assert asking.search("baleen engine") == asking.search("giraffe") == asking.search(" ") == ()


def test_of_two_matches_the_one_in_the_title_comes_first(tmp_path, file):
    urls = [f"https://k.example/{n}" for n in range(40)]
    teach = [url for url in urls if role_of(url) == "training"][:2]
    write_crawl(
        tmp_path, pages=8, bodies={teach[0]: "<p>page giraffe text</p>", teach[1]: "<p>a</p>"}
    )
    asking = session(tmp_path, file)
    in_title = structs.replace(asking.crawled.pages[teach[1]], title="The giraffe", relevance=0.0)
    crawled = replace(asking.crawled, pages={**asking.crawled.pages, teach[1]: in_title})
    asking.refresh(crawled, build_training_pool(crawled, None))
    assert [page.url for page in asking.search("giraffe")] == [teach[1], teach[0]]


def test_labelled_pages_are_not_found_again(crawl, file):
    asking = session(crawl, file)
    before = asking.search("krill")
    asking.answer(before[0].url, "yes", "", 1.0)
    assert before[0] not in asking.search("krill")


def test_a_page_that_was_searched_for_is_shown_and_its_label_says_so(crawl, file):
    asking = session(crawl, file)
    found = asking.search("baleen")[3]
    assert asking.show(found.url) == asking.current()
    label = asking.answer(found.url, "yes", "", 1.0)
    assert (label.reason, label.role) == ("searched", "training")


def test_a_page_of_the_evaluation_set_cannot_be_searched_for(crawl, file):
    asking = session(crawl, file)
    drawn = next(url_of(n) for n in range(60) if role_of(url_of(n)) == "evaluation")
    with pytest.raises(LabelError, match="drawn at random"):
        asking.show(drawn)
    with pytest.raises(LabelError, match="not a page of this crawl"):
        asking.show("https://elsewhere.example/")
