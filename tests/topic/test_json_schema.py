"""The JSON Schema accepts what the reader accepts, and refuses what editors should mark."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from focused.topic.topic_keys import TOPIC_KEYS, topic_schema
from tests.support.crawling import ROOT

TOPICS = sorted((ROOT / "topics").glob("*.toml"))


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    schema = topic_schema()
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TOPICS, ids=lambda path: path.stem)
def test_shipped_topic_files_follow_it(validator, path):
    assert not list(validator.iter_errors(read(path)))


def test_it_has_every_key_with_its_meaning():
    properties = topic_schema()["properties"]
    for section, keys in TOPIC_KEYS.items():
        found = properties[section] if section else {"properties": properties}
        found = found.get("anyOf", [found])[0]
        for key in keys:
            assert found["properties"][key.name]["description"] == key.meaning


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("scope", "max_deph", 3),
        ("scope", "max_depth", -1),
        ("scope", "spam", "avoids"),
        ("scope", "allow_hosts", "example.org"),
        ("training", "estimator", "bayes"),
        ("budget", "pages", 1.5),
        ("output", "warc", "all"),
        ("politeness", "delays", {"example.org": "1"}),
    ],
)
def test_it_refuses_what_the_reader_refuses(validator, section, key, value):
    topic = read(TOPICS[0])
    topic.setdefault(section, {})[key] = value
    (error,) = validator.iter_errors(topic)
    assert list(error.absolute_path)[:1] == [section]


@pytest.mark.parametrize("login", [{"hosts": ["a.test"]}, [{"hosts": ["a.test"]}] * 2])
def test_one_login_or_several_are_accepted(validator, login):
    assert not list(validator.iter_errors({**read(TOPICS[0]), "login": login}))


def test_defaults_are_values():
    scope = topic_schema()["properties"]["scope"]["properties"]
    assert scope["max_links_per_page"]["default"] == 5_000
    assert "default" not in scope["max_depth"]
