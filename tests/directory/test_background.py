"""The general background: good samples alone suffice, and pages in other languages are not good."""

import json
from collections import Counter
from importlib.resources import files

import pytest

from focused.classifier.topic_training import train_topic
from focused.directory.sample_set import BACKGROUND_CATEGORY, background_samples, is_background
from focused.web.page import Page
from tests.support import made_up_topic as made_up

# Article 1 of the Universal Declaration of Human Rights.
FOREIGN = {
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille "
    "on annettu järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق، وقد وهبوا عقلا وضميرا وعليهم أن "
    "يعامل بعضهم بعضا بروح الإخاء.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "is": "Hver maður er borinn frjáls og jafn öðrum að virðingu og réttindum. Menn eru gæddir "
    "vitsmunum og samvizku, og ber þeim að breyta bróðurlega hverjum við annan.",
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with "
    "reason and conscience and should act towards one another in a spirit of brotherhood.",
}


def test_it_has_many_languages_and_english_most_of_all():
    languages = Counter(entry.category for entry in background_samples())
    assert len(languages) > 50
    assert languages.most_common(1)[0][0] == f"{BACKGROUND_CATEGORY}/en"
    assert sum(languages.values()) > 4_000


def test_it_is_small_enough_to_be_shipped():
    data = files("focused.directory").joinpath("data", "background.jsonl.xz").read_bytes()
    assert len(data) < 1_500_000


def test_each_sample_has_words_of_its_own_and_is_not_fetched():
    samples = background_samples()
    assert len({entry.url for entry in samples}) == len(samples)
    assert all(len(entry.text.split()) >= 100 for entry in samples)
    assert not any(entry.needs_fetch for entry in samples)


def test_fewer_samples_are_the_first_of_more():
    assert background_samples(100, seed=3) == background_samples(400, seed=3)[:100]


def test_another_seed_selects_other_samples():
    assert background_samples(100, seed=1) != background_samples(100, seed=2)


def test_more_than_there_are_is_all_there_are():
    assert len(background_samples(10**6)) == len(background_samples())


@pytest.mark.parametrize(
    ("category", "expected"),
    [("Background/de", True), ("Background", True), ("Backgrounds/de", False), ("Top", False)],
)
def test_its_categories_are_known_by_their_name(category, expected):
    assert is_background(category) == expected


@pytest.fixture(scope="module")
def cheese(tmp_path_factory):
    """A classifier of cheese, from thirty pages on topic and the background alone."""
    folder = tmp_path_factory.mktemp("background")
    pages = {f"http://{n}.example/": made_up.page("cheese", n) for n in range(30)}
    lines = [
        {"category": "Top/Food/Cheese", "url": url, "text": page.text, "title": page.title}
        for url, page in pages.items()
    ]
    lines += [{"category": entry.category, "text": entry.text} for entry in background_samples(300)]
    topic = made_up.topic(folder, {}, directory=(folder / "samples.jsonl",))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "samples.jsonl").write_text(text, encoding="utf-8")
    return train_topic(topic, lambda _: None, now=0.0).classifier


def test_a_topic_is_learned_from_good_samples_and_the_background_alone(cheese):
    classified = [cheese.classify(made_up.page("cheese", number)) for number in range(100, 120)]
    assert sum(verdict.on_topic for verdict in classified) >= 18


@pytest.mark.parametrize("language", FOREIGN)
def test_a_page_about_something_else_is_off_topic_in_any_language(cheese, language):
    page = Page("http://un.example/", title="", text=FOREIGN[language] * 5)
    assert not cheese.classify(page).on_topic
