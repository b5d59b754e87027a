"""``focused crawl --processes``: stopping, resuming, and folders of other crawls."""

import json
import shutil
import signal
from dataclasses import replace

import pytest

from focused.errors import ConfigurationError, StorageError
from focused.rounds.executors import RayExecutor
from focused.rounds.manifest import Manifest, commit_manifest
from focused.rounds.storage import SharedStorage
from focused.rounds.topic_files import path_below, secrets_of, store_topic_files, write_topic_files
from focused.topic.login import Login
from tests.support.recorded_web import Served, served
from tests.support.round_crawls import RoundCrawl, requests_of_pages, ring_web, round_crawl
from tests.support.simulated import topic as simulated_topic


def pages_asked(site: Served) -> int:
    return requests_of_pages(site).total()


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_stopped_crawl_is_resumed_by_the_same_command(tmp_path, is_shared):
    web, storage = ring_web(4, 10), f"file://{tmp_path}/shared" if is_shared else None
    with (
        served(web) as site,
        round_crawl(tmp_path, site, processes=2, delay_s=0.5, storage=storage) as crawl,
    ):
        driver = crawl.start()
        crawl.wait_for(
            lambda: crawl.rounds() > is_shared and pages_asked(site) > 4, "pages of a round"
        )
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 0
        output = tmp_path / "shared/whales" if is_shared else crawl.folder
        assert json.loads((output / "stats.json").read_text())["end_reason"] == "stopped"
        assert 0 < len(crawl.fetched()) < 40
        if is_shared:
            shutil.rmtree(crawl.folder)
        assert crawl.run() == 0
        assert crawl.fetched().total() == 40
        if is_shared:
            names = {path.name for path in output.iterdir()}
            assert {"pages", "links", "warc", "settings.json", "stats.json"} <= names
        else:
            assert (crawl.folder / "partitions" / "partition-0000" / "pages.parquet").exists()
    assert set(requests_of_pages(site).values()) == {1}


def test_the_number_of_processes_cannot_be_changed(tmp_path):
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1", processes=3)
    storage = SharedStorage(f"file://{tmp_path}", "crawl")
    commit_manifest(storage, Manifest("whales", "focused", 4, "domain", 1))
    assert crawl.run() != 0
    assert "in 4 processes" in crawl.log.read_text()


def test_a_crawl_of_one_process_is_not_resumed_by_several(tmp_path):
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1")
    (crawl.folder / "state").mkdir(parents=True)
    assert crawl.run() != 0
    assert "resumed without --processes" in crawl.log.read_text()


def test_a_second_driver_is_refused(tmp_path):
    web = ring_web(4, 50)
    with served(web) as site, round_crawl(tmp_path, site, processes=2, delay_s=2.0) as crawl:
        driver = crawl.start()
        crawl.wait_for(lambda: crawl.rounds() > 0, "a round")
        second = RoundCrawl(tmp_path, site.address, processes=2)
        assert second.run() != 0
        assert "is in use by another crawl" in second.log.read_text()
        driver.kill()
        driver.wait()


def test_settings_of_one_process_are_refused(tmp_path):
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1", settings=["FOCUSED_METRICS_PORT=9000"])
    assert crawl.run() != 0
    assert "FOCUSED_METRICS_PORT cannot be set" in crawl.log.read_text()


def test_ray_needs_a_storage(tmp_path):
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1", ray="local")
    assert crawl.run() != 0
    assert "--ray needs a storage that all machines reach" in crawl.log.read_text()


def test_a_ray_cluster_that_does_not_answer_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"--ray 127\.0\.0\.1:1: .*refused; start a clu"):
        RayExecutor("unused", "127.0.0.1:1", processes=2)


def test_no_secret_reaches_the_storage(tmp_path, monkeypatch):
    (tmp_path / "cookies.txt").write_text("# the cookies")
    login = Login(("a.test",), password="env:SITE_PASSWORD", cookies=tmp_path / "cookies.txt")
    path = tmp_path / "whales.toml"
    path.write_text('[seeds]\nfile = "seeds.txt"\n')
    (tmp_path / "seeds.txt").write_text("http://a.test/")
    topic = replace(simulated_topic(tmp_path), path=path, login=(login,))
    monkeypatch.setenv("SITE_PASSWORD", "hidden")
    storage = SharedStorage(f"file://{tmp_path}/shared", "whales")
    files = store_topic_files(storage, topic)
    assert set(files) == {str(path), str(tmp_path / "seeds.txt")}
    environment, secrets = secrets_of(topic)
    assert environment == {"SITE_PASSWORD": "hidden"}
    stored = b"".join(each.read_bytes() for each in tmp_path.glob("shared/**/*") if each.is_file())
    assert b"cookies" not in stored and b"hidden" not in stored
    write_topic_files(storage, files, secrets, tmp_path / "there")
    for each in (path, tmp_path / "seeds.txt", tmp_path / "cookies.txt"):
        assert path_below(tmp_path / "there", str(each)).read_bytes() == each.read_bytes()


def test_a_damaged_file_of_the_topic_is_named(tmp_path):
    path = tmp_path / "whales.toml"
    path.write_text("[seeds]\n")
    storage = SharedStorage(f"file://{tmp_path}/shared", "whales")
    files = store_topic_files(storage, replace(simulated_topic(tmp_path), path=path))
    storage.write(f"files/{files[str(path)]}", b"another")
    with pytest.raises(StorageError, match=f"the content of {path}, is damaged"):
        write_topic_files(storage, files, {}, tmp_path / "there")
