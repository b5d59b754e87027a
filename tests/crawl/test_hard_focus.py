"""``training.focus``: which pages' links a crawl follows."""

from dataclasses import replace

import pytest

from focused.crawl.enqueue import follows_links
from focused.web.page import Classification
from tests.support.simulated import page, site, topic
from tests.support.whale_models import WhaleClassifier

A = "http://a.test/"
WEB = site(
    page(A, f"{A}whale", f"{A}tulip"),
    page(f"{A}whale", f"{A}whale/2", text="whale"),
    page(f"{A}tulip", f"{A}tulip/2", f"{A}tulip/3", text="tulip"),
    page(f"{A}whale/2", text="whale song"),
    page(f"{A}tulip/2", text="tulip bulb"),
    page(f"{A}tulip/3", text="tulip field"),
)


def focused(folder, focus):
    subject = topic(folder, A)
    training = replace(subject.training, focus=focus, good=("Top/Sea/Whales",))
    return replace(subject, training=training)


def test_hard_focus_follows_seeds_and_what_is_on_topic_alone(simulate, tmp_path):
    crawl = simulate(focused(tmp_path, "hard"), WEB).run()
    assert set(crawl.urls) == {A, A + "whale", A + "tulip", A + "whale/2"}
    assert crawl.crawl.counters.out_of_scope == {"hard focus": 2}


def test_soft_focus_follows_every_page(simulate, tmp_path):
    crawl = simulate(focused(tmp_path, "soft"), WEB).run()
    assert set(crawl.urls) == {
        A,
        A + "whale",
        A + "tulip",
        A + "whale/2",
        A + "tulip/2",
        A + "tulip/3",
    }


@pytest.mark.parametrize(
    ("category", "followed"),
    [
        ("Top/Sea/Whales", True),
        ("Top/Sea/Whales/Blue", True),
        ("Top/Sea", False),
        ("Top/Sea/Whales (other)", False),
        ("Top/Garden", False),
    ],
)
def test_the_likeliest_category_decides_whatever_the_relevance(tmp_path, category, followed):
    training = focused(tmp_path, "hard").training
    for on_topic in (True, False):
        classification = Classification(0.4, on_topic)
        assert follows_links(training, classification, 1, lambda: category) == followed


def test_a_page_with_too_little_text_to_be_classified_is_followed(tmp_path):
    unknown = Classification(0.1, on_topic=False, known=False)
    assert follows_links(focused(tmp_path, "hard").training, unknown, 1, lambda: "Top/Garden")


def test_a_model_of_naive_bayes_tells_the_category(simulate, tmp_path):
    class Model(WhaleClassifier):
        def likeliest_category(self, page):
            return "Top/Sea/Whales" if page.url.endswith("tulip") else "Top/Garden"

    crawl = simulate(focused(tmp_path, "hard"), WEB, classifier=Model()).run()
    assert set(crawl.urls) == {A, A + "whale", A + "tulip", A + "tulip/2", A + "tulip/3"}
