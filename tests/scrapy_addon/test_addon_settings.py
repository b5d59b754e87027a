"""Errors in the add-on's settings: one line that names the setting, and no folder."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from focused.scrapy_addon.addon import FocusedAddon
from focused.scrapy_addon.addon_settings import all_settings
from focused.scrapy_addon.spiders.topic_spider import TopicSpider
from tests.support.crawling import write_topic

GUIDE = "tests.support.whale_models.fixed_models"


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    return write_topic(tmp_path / "topics", "http://a.test/")


def refused(capsys: pytest.CaptureFixture[str], **values: Any) -> str:
    """The messages about settings that are refused."""
    spider = Spider("own")
    crawler = cast(Crawler, SimpleNamespace(spider=spider, spidercls=spider))
    with pytest.raises(SystemExit) as ended:
        FocusedAddon(crawler).update_settings(Settings(values))
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "Traceback" not in output
    last = output.splitlines()[-1]
    assert last.startswith("focused: ")
    return last


WRONG = [
    ("FOCUSED_TOPIC", "nowhere.toml"),
    ("FOCUSED_TOPIC", "."),
    ("FOCUSED_TOPIC", 5),
    ("FOCUSED_POLICY", "worst"),
    ("FOCUSED_POLICY", "no.such.module.policy"),
    ("FOCUSED_POLICY", 5),
    ("FOCUSED_FOLLOW_LINKS", "perhaps"),
    ("FOCUSED_MODELS", "no.such.guide"),
    ("FOCUSED_MODELS", "tests.support.whale_models.fixd_models"),
    ("FOCUSED_MODELS", "guide"),
    ("FOCUSED_MODELS", "tests.support.crawling.ROOT"),
    ("FOCUSED_REPLAY", "8100"),
    ("FOCUSED_REPLAY", 8100),
    ("FOCUSED_PARSER_PROCESSES", "1.5"),
    ("FOCUSED_PARSER_PROCESSES", -1),
    ("FOCUSED_PARSER_PROCESSES", 65),
    ("FOCUSED_CLOCK", "fast"),
    ("FOCUSED_CLOCK", "0,0,1"),
    ("FOCUSED_DNS_SERVERS", "nine"),
    ("FOCUSED_DNS_SERVERS", ["9.9.9.9"]),
    ("FOCUSED_RECORDED_WEB", "webs/typo"),
    ("FOCUSED_ITEM_FIELDS", "text, colour"),
    ("FOCUSED_ITEM_FIELDS", 5),
    ("FOCUSED_PAGES", "many"),
    ("FOCUSED_PAGES", 0),
    ("FOCUSED_PAGES", 1.5),
    ("FOCUSED_DELAY_S", "-1"),
    ("FOCUSED_DELAY_S", "nan"),
    ("FOCUSED_CONCURRENCY", 0),
    ("FOCUSED_CONCURRENCY", "all"),
    ("FOCUSED_CONTINUOUS", "perhaps"),
    ("FOCUSED_FOLDER", 5),
    ("FOCUSED_CLUSTER_STORAGE", 5),
    ("FOCUSED_PARTITION", "3"),
    ("FOCUSED_FETCH_SAMPLES", "perhaps"),
    ("FOCUSED_PARSER_PROCESSES", "some"),
    ("FOCUSED_PARSE_TIMEOUT_S", "soon"),
    ("FOCUSED_PARSE_MEMORY_MB", 0),
    ("FOCUSED_JAVASCRIPT_BROWSER", 5),
    ("FOCUSED_JAVASCRIPT_SANDBOX", "perhaps"),
    ("FOCUSED_JAVASCRIPT_TIMEOUT_S", 0),
    ("FOCUSED_JAVASCRIPT_REQUESTS", 0.5),
    ("FOCUSED_JAVASCRIPT_MEMORY_MB", "much"),
    ("FOCUSED_JAVASCRIPT_PAGES", 0),
    ("FOCUSED_PROGRESS_INTERVAL_S", "often"),
    ("FOCUSED_LOG_FORMAT", "xml"),
    ("FOCUSED_METRICS_PORT", "web"),
    ("FOCUSED_METRICS_PORT", 65_536),
    ("FOCUSED_METRICS_HOST", "localhost"),
    ("FOCUSED_PROGRESS_INTERVAL_S", float("nan")),
    ("FOCUSED_LOG_LEVEL", "LOUD"),
    ("FOCUSED_LOG_TO_FOLDER", "perhaps"),
    ("FOCUSED_REPORT", "perhaps"),
    ("FOCUSED_OWNS_PROCESS", "perhaps"),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda each: str(each))
def test_a_wrong_value_is_one_line_that_names_the_setting(name, value, topic, tmp_path, capsys):
    before = sorted(tmp_path.rglob("*"))
    given = {"FOCUSED_TOPIC": str(topic), "FOCUSED_MODELS": GUIDE, name: value}
    output = refused(capsys, **given)
    assert name in output or str(value) in output
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unknown_revisit_policy_is_refused_with_its_key(topic, capsys):
    text = topic.read_text().replace("[revisit]", '[revisit]\npolicy = "often"')
    topic.write_text(text)
    output = refused(capsys, FOCUSED_TOPIC=str(topic), FOCUSED_MODELS=GUIDE)
    assert f"{topic}: revisit.policy: " in output
    assert "hazard" in output


def test_each_setting_has_a_wrong_value_above():
    assert {name for name, _ in WRONG} == set(all_settings())


def test_an_unknown_setting_is_answered_with_the_nearest(topic, capsys):
    output = refused(capsys, FOCUSED_TOPIC=str(topic), FOCUSED_PAGE=5)
    assert "FOCUSED_PAGE: there is no such setting; did you mean FOCUSED_PAGES?" in output


def test_a_reactor_without_asyncio_is_refused(topic, capsys):
    reactor = "twisted.internet.selectreactor.SelectReactor"
    assert reactor in refused(capsys, FOCUSED_TOPIC=str(topic), TWISTED_REACTOR=reactor)


def test_a_crawl_without_a_reactor_is_refused(topic, capsys):
    output = refused(capsys, FOCUSED_TOPIC=str(topic), TWISTED_REACTOR_ENABLED=False)
    assert "TWISTED_REACTOR_ENABLED" in output


@pytest.mark.parametrize("folder", ["file/crawl", "file"])
def test_a_folder_that_cannot_be_made_is_named(folder, topic, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    wanted = tmp_path / folder
    given = {"FOCUSED_TOPIC": str(topic), "FOCUSED_MODELS": GUIDE, "FOCUSED_FOLDER": str(wanted)}
    assert str(wanted) in refused(capsys, **given)


def test_samples_that_do_not_do_leave_no_folder(topic, tmp_path, capsys):
    text = topic.read_text().replace("[training]", '[training]\nmodel = "models/whales.joblib"')
    topic.write_text(text)
    directory = topic.with_name("directory.tsv")
    directory.write_text(directory.read_text().replace("Top/Whales", "Top/Other"))
    before = sorted(tmp_path.rglob("*"))
    assert "training.good" in refused(capsys, FOCUSED_TOPIC=str(topic))
    assert sorted(tmp_path.rglob("*")) == before


class QuietSpider(TopicSpider):
    name = "quiet"
    custom_settings = MappingProxyType({"FOCUSED_REPORT": False})


@pytest.mark.parametrize(
    ("spider", "of_project", "reports"),
    [(TopicSpider, None, True), (TopicSpider, False, False), (QuietSpider, None, False)],
)
def test_a_project_or_a_spider_switches_the_report_off(spider, of_project, reports):
    settings = Settings()
    if of_project is not None:
        settings.set("FOCUSED_REPORT", of_project, priority="project")
    spider.update_settings(settings)
    assert settings.getbool("FOCUSED_REPORT") == reports
