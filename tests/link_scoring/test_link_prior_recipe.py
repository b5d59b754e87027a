"""The recipe of the shipped link priors, from webs and topics to files and card."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from link_prior import Options, Web, main, make_priors, topics_of

from focused.errors import ConfigurationError
from focused.link_scoring.linear_model import LinkPriorFile, load_link_prior
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from tests.lab.two_sides import build_web, write_compared

pytestmark = pytest.mark.long

NAMES = ("foldoc", "wordnet")


def web_and_topic(folder: Path, name: str) -> tuple[Web, Topic]:
    web = Web(name, build_web(folder / name / "web"))
    topic = load_topic(write_compared(folder / name))
    training = replace(
        topic.training,
        good=("Top/Whales",),
        model=folder / f"{name}.joblib",
        link_prior=f"without-{name}",
    )
    return web, replace(topic, name=f"{name}-whales", training=training)


def fitted(folder: Path, **options: int) -> tuple[str, dict[str, bytes]]:
    """The card, and the files by name."""
    made = [web_and_topic(folder, name) for name in NAMES]
    given = {"pages": 15, "repeat": 2, "jobs": 1, **options}
    out = folder / "priors"
    card = make_priors(
        [web for web, _ in made],
        [topic for _, topic in made],
        Options(**given, out=out, card=folder / "card.md"),
    )
    assert (folder / "card.md").read_text() == card
    return card, {each.name: each.read_bytes() for each in out.iterdir()}


def test_a_prior_of_all_webs_and_one_without_each_are_written_with_their_card(tmp_path):
    card, files = fitted(tmp_path)
    priors = {name: msgspec.json.decode(text, type=LinkPriorFile) for name, text in files.items()}
    assert {name: prior.fitted_on for name, prior in priors.items()} == {
        "all-webs.json": ("foldoc", "wordnet"),
        "without-foldoc.json": ("wordnet",),
        "without-wordnet.json": ("foldoc",),
    }
    assert load_link_prior(tmp_path / "priors" / "all-webs.json").weights.any()
    # Two draws of two kinds of seeds on each web.
    assert "links that 8 crawls followed, of 2 topics on 2 recorded webs" in card
    assert "python training/link_prior.py --pages 15 --repeat 2 --seed 1000" in card


def test_the_same_webs_and_seed_give_the_same_bytes_and_another_seed_others(tmp_path):
    first, again = fitted(tmp_path / "first"), fitted(tmp_path / "again")
    assert first == again
    assert fitted(tmp_path / "other", seed=2)[1] != first[1]


def test_the_recipe_needs_no_shipped_prior_for_these_may_be_what_it_is_to_mend(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("focused.link_scoring.linear_model.list_shipped_priors", dict)
    with pytest.raises(ConfigurationError):
        load_link_prior()
    assert len(fitted(tmp_path)[1]) == 3


def test_a_topic_belongs_to_the_web_that_its_prior_leaves_out(tmp_path):
    (web, topic), (_, foreign) = (web_and_topic(tmp_path, name) for name in NAMES)
    assert topics_of(web, [foreign, topic]) == [topic]


@pytest.mark.parametrize("option", ["--pages", "--repeat", "--jobs"])
def test_counts_begin_at_one(option, capsys):
    with pytest.raises(SystemExit):
        main([option, "0"])
    assert "0 is no number from 1 on" in capsys.readouterr().err
