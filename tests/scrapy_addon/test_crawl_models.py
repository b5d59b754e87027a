"""A crawl's models: trained by a process of its own; their samples are no harvest."""

import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.settings import Settings

from focused.classifier.classifier_file import training_urls_path
from focused.classifier.model_file import install_model
from focused.classifier.topic_training import train_topic
from focused.errors import TrainingError
from focused.scrapy_addon import partitioned_crawl
from focused.scrapy_addon.crawl_models import load_models, training_urls
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused_lab.recorded_web.web_import import import_html
from tests.support.command import focused
from tests.support.made_up_topic import BASE, topic, web, write_site


@pytest.fixture
def trained(tmp_path: Path) -> Topic:
    pages = web()
    made = topic(tmp_path, pages)
    install_model(train_topic(made, pages.get, now=1.0), made.training.model)
    return made


def test_a_crawl_reads_no_directory_whose_urls_are_listed(trained, monkeypatch):
    monkeypatch.delattr("focused.directory.directory_reader.load_training_samples")
    assert training_urls(trained) == set(web())


def test_the_directory_is_read_if_it_has_changed(trained):
    with trained.training.directory[0].open("a") as file:
        file.write("Top/Cheese\thttp://new.example/\tNew\tNew\n")
    assert training_urls(trained) == {*web(), "http://new.example/"}


def test_the_directory_is_read_for_a_list_of_an_earlier_version(trained):
    training_urls_path(trained.training.model).write_text("http://final.example/\n")
    assert training_urls(trained) == {*web(), "http://final.example/"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder of a recorded web, beside the topic file ``cheese.toml``."""
    write_site(tmp_path / "site")
    import_html(tmp_path / "site", BASE, tmp_path / "web", "web")
    return tmp_path / "web"


LOADING = """
import sys
from pathlib import Path
from scrapy.settings import Settings
from focused.scrapy_addon.crawl_models import load_models
from focused.topic.topic_file import load_topic
load_models(Settings({"FOCUSED_RECORDED_WEB": sys.argv[1]}), load_topic(Path(sys.argv[2])))
print(*sys.modules)
"""


def test_a_crawl_that_needs_a_model_does_not_load_what_training_needs(site):
    topic_file = site.with_name("cheese.toml")
    command = [sys.executable, "-c", LOADING, str(site), str(topic_file)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert load_topic(topic_file).training.model.exists()
    assert not {"sklearn", "scipy"}.intersection(loaded)


def test_what_is_wrong_with_the_samples_is_raised_in_the_crawl(site):
    topic_file = site.with_name("cheese.toml")
    topic_file.write_text(topic_file.read_text().replace("Top/Food", "Top/Drinks"))
    with pytest.raises(TrainingError, match=r"training\.good: 'Top/Drinks' has no sample"):
        load_models(Settings({"FOCUSED_RECORDED_WEB": str(site)}), load_topic(topic_file))


def test_ctrl_c_in_a_training_ends_a_crawl_by_several_processes_like_others(site, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(partitioned_crawl, "load_models", interrupt)
    done = focused("crawl", site.with_name("cheese.toml"), "--processes", 2, status=130)
    assert "stopped before the crawl started; the same command resumes" in done.output
