"""Keywords are a prior of the classifier, updated by labels."""

from dataclasses import replace
from statistics import median

from focused.classifier.keyword_classifier import KeywordWeights
from focused.classifier.sample_texts import SampleWords
from focused.classifier.topic_training import train_topic
from focused.classifier.training_report import TrainedModel
from focused.labels.label_file import Label
from focused.text.static_embedding import load_embedding
from focused.topic import Seeds
from focused.web.page import Page
from tests.support.made_up_topic import page, topic, web

KEYWORDS = ("gouda", "chedd*", "ripening")


def label(url: str, verdict: str) -> Label:
    return Label(url=url, verdict=verdict, role="training", at=1.0)


def relevance(model: TrainedModel, kind: str) -> list[float]:
    found = [model.classifier.classify(page(kind, 60 + number)) for number in range(10)]
    return [each.guiding_relevance for each in found]


def taught(folder, *, cheese: int = 1, labels=(), keywords=KEYWORDS, **more) -> TrainedModel:
    """A model of so many listed cheese pages, and of labels; garden pages are the others."""
    pages = web(cheese=cheese, garden=20)
    everything = {**web(cheese=200, garden=200), **pages}
    made = topic(folder, pages, keywords=keywords, background=True, **more)
    return train_topic(made, everything.get, now=0.0, labels=labels)


def test_one_page_and_keywords_make_a_model_that_ranks_pages_on_topic_first(tmp_path):
    model = taught(tmp_path)
    assert min(relevance(model, "cheese")) > max(relevance(model, "garden"))


def test_without_labels_a_warning_says_that_keywords_dominate(tmp_path):
    [first, *_] = taught(tmp_path).report.warnings
    assert first.startswith("0 labelled pages (0 on topic): the keywords dominate")


def test_with_labels_enough_the_keywords_are_not_warned_of(tmp_path):
    labels = [
        label(page(kind, number).url, verdict)
        for number in range(30)
        for kind, verdict in (("cheese", "yes"), ("garden", "no"))
    ]
    assert not any(
        "the keywords decide" in one for one in taught(tmp_path, labels=labels).report.warnings
    )


def test_labels_that_contradict_the_keywords_prevail(tmp_path):
    """Somebody who gave garden words as keywords labels cheese pages with yes."""
    keywords = ("tulip", "hedge*", "compost")
    labels = [
        label(page(kind, number).url, verdict)
        for number in range(100, 200)
        for kind, verdict in (("cheese", "yes"), ("garden", "no"))
    ]
    before = taught(tmp_path, keywords=keywords)
    after = taught(tmp_path, keywords=keywords, labels=labels)
    assert median(relevance(before, "garden")) > median(relevance(before, "cheese"))
    assert median(relevance(after, "garden")) < 0.5 < min(relevance(after, "cheese"))


def test_when_every_listed_page_was_labelled_no_the_keywords_alone_make_a_model(tmp_path):
    model = taught(tmp_path, labels=[label(page("cheese", 0).url, "no")])
    assert min(relevance(model, "cheese")) > max(relevance(model, "garden"))


def test_a_directory_without_a_page_on_topic_is_no_error_where_there_are_keywords(tmp_path):
    model = taught(tmp_path, cheese=0)
    assert min(relevance(model, "cheese")) > max(relevance(model, "garden"))


def test_a_seed_counts_as_vouched_for(tmp_path):
    pages = web(cheese=10, garden=20)
    made = topic(tmp_path, pages, keywords=KEYWORDS, background=True)
    seeded = replace(made, seeds=Seeds(tuple(url for url in pages if "cheese" in url)))
    without, with_seeds = (
        train_topic(one, pages.get, now=0.0).classifier.bias for one in (made, seeded)
    )
    assert with_seeds > without


def test_an_anchor_with_a_keyword_has_a_positive_score(tmp_path):
    plain, topical = taught(tmp_path).classifier.score_texts(
        ["read more here", "ripening of gouda"]
    )
    assert topical > max(plain, 0.0)


def test_the_words_of_a_keyword_are_found_by_their_beginning():
    found = KeywordWeights(("chedd*", "blue cheese")).words_among(["cheddars", "cheesy", "shed"])
    assert {"cheddars", "blue", "cheese"} <= found
    assert not found & {"cheesy", "shed"}


def test_each_word_of_a_phrase_has_its_share_of_the_weight():
    keywords = ("blue cheese", "gouda")
    sample_words = SampleWords()
    for number in range(4):
        sample_words.add([f"only{number}"], [], f"{number}.example")
    vocabulary = sample_words.vocabulary(KeywordWeights(keywords).words_among(()))
    weights = dict(zip(vocabulary.words, KeywordWeights(keywords).of(vocabulary), strict=True))
    assert 0.0 < weights["blue"] == weights["cheese"] < weights["gouda"]


def test_pages_near_the_meaning_of_the_keywords_are_relevant_without_their_words(tmp_path):
    classifier = taught(tmp_path).classifier
    shared = "cheese garden milk soil rind seed dairy tulip"
    ours = Page("https://new.example/", title="Camembert, mozzarella and yogurt", text=shared)
    others = replace(ours, title="Lawyers, courts and parliaments")
    assert classifier.classify(ours).relevance > classifier.classify(others).relevance


def test_a_prefix_means_the_words_that_begin_with_it():
    embedding = load_embedding()
    assert embedding is not None
    prefix, word, other = (
        KeywordWeights([keyword]).direction(embedding) for keyword in ("chem*", "chemistry", "law")
    )
    assert prefix @ word > prefix @ other + 0.3


def test_keywords_that_the_embedding_does_not_know_have_no_meaning():
    embedding = load_embedding()
    assert embedding is not None
    assert not KeywordWeights(["音楽"]).direction(embedding).any()
