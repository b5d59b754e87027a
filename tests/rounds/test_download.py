"""What a crawl on many machines has committed is downloaded and read while it runs."""

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from focused.archive.warc_files import warc_files, warc_path
from focused.cli import main
from focused.errors import StateError, StorageError
from focused.reports.crawl_folder import read_crawl
from focused.rounds import replication
from focused.rounds.driver import RoundReport
from focused.rounds.manifest import last_manifest
from focused.rounds.replication import download_crawl
from focused.rounds.storage import MissingObjectError, SharedStorage
from tests.rounds.simulated_rounds import SimulatedRounds, ring

SEED = "http://h0.test/0"
WEB = ring(8, 6)


@pytest.fixture
def rounds(tmp_path: Path) -> Iterator[SimulatedRounds]:
    made = SimulatedRounds(tmp_path / "machines", WEB, SEED, shared=f"memory://{uuid.uuid4()}")
    yield made
    made.abandon()


def responses(folder: Path) -> Counter[str]:
    """How often each page is in the WARC files, as warcio reads them."""
    found = Counter[str]()
    for path in warc_files(folder):
        with path.open("rb") as file:
            found.update(
                each.rec_headers.get_header("WARC-Target-URI")
                for each in ArchiveIterator(file)
                if each.rec_type in ("response", "revisit")
            )
    return found


def fetched(folder: Path) -> list[str]:
    pages = read_crawl(folder).pages
    return sorted(pages["url"][pages["outcome"] == "fetched"])


def test_after_each_round_it_is_what_the_manifest_says(rounds, tmp_path):
    driver, counts = rounds.driver(), []

    def after_round(report: RoundReport) -> None:
        folder = tmp_path / f"round-{report.round}"
        manifest = download_crawl(rounds.storage.url, folder)
        told = sum(each.counters.get("fetched", 0) for each in manifest.records.values())
        urls = fetched(folder)
        assert manifest.round == report.round
        assert len(urls) == told
        found = responses(folder)
        assert {found[url] for url in urls} == {1}
        assert not found.keys() & WEB.keys() - set(urls), "later than the manifest"
        counts.append(told)

    driver._on_round = after_round
    assert driver.run() == "no link is left"
    assert len(counts) > 2
    assert 0 < counts[0] < counts[-1] == len(WEB)


def test_the_rows_name_the_places_of_their_records(rounds, tmp_path):
    rounds.run()
    download_crawl(rounds.storage.url, tmp_path / "copy")
    for _, page in read_crawl(tmp_path / "copy").pages.dropna(subset=["warc_offset"]).iterrows():
        with warc_path(tmp_path / "copy", page["warc_file"]).open("rb") as file:
            file.seek(int(page["warc_offset"]))
            record = next(iter(ArchiveIterator(file)))
        assert record.rec_headers.get_header("WARC-Target-URI") == page["url"]


def test_a_state_that_is_deleted_meanwhile_is_left_for_the_newest(rounds, tmp_path, monkeypatch):
    rounds.run()
    restore, tries = replication.restore, []

    def restored_late(*given: object) -> None:
        tries.append(given)
        if len(tries) == 2:
            raise MissingObjectError("it was deleted")
        restore(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(replication, "restore", restored_late)
    download_crawl(rounds.storage.url, tmp_path / "copy")
    assert fetched(tmp_path / "copy") == sorted(WEB)


def test_the_command_tells_how_many_pages_it_wrote_and_reports_read_them(rounds, tmp_path):
    rounds.run()
    copy = str(tmp_path / "copy")
    result = CliRunner().invoke(main, ["download", rounds.storage.url, copy])
    manifest = last_manifest(rounds.storage)
    assert manifest is not None
    assert result.output == f"{copy}: {len(WEB)} pages, as of round {manifest.round}\n"
    result = CliRunner().invoke(main, ["report", copy])
    assert result.exit_code == 0, result.output
    assert "h1.test" in result.output


def test_nothing_is_overwritten(rounds, tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(StateError, match="is not empty; name a new folder"):
        download_crawl(rounds.storage.url, tmp_path)


def test_where_no_crawl_is_stored_that_is_said(tmp_path):
    empty = SharedStorage(f"memory://{uuid.uuid4()}", "mine")
    with pytest.raises(StateError, match="no round of a crawl on several machines"):
        download_crawl(empty.url, tmp_path / "copy")


def test_a_download_that_fails_leaves_nothing(rounds, tmp_path, monkeypatch):
    rounds.run()
    monkeypatch.setattr(replication, "download_warc_files", Mock(side_effect=StorageError("slow")))
    with pytest.raises(StorageError, match="slow"):
        download_crawl(rounds.storage.url, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
