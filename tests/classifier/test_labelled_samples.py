"""Labels as samples."""

from focused.classifier.model_file import load_model, save_model
from focused.classifier.sample_texts import OTHER_CATEGORY, LabelCounts, add_labels
from focused.classifier.topic_training import train_topic
from focused.directory import DirectoryEntry
from focused.directory.sample_set import SampleSet
from focused.labels.label_file import Label
from focused.web.page import Page
from tests.support.made_up_topic import page, topic, web
from tests.support.prose import prose_pages

LISTED = SampleSet(
    (
        DirectoryEntry("Top/Food/Cheese", "http://a.example/", "A"),
        DirectoryEntry("Top/Home", "http://b.example/", "B"),
    ),
    (True, False),
)


def label(url: str, verdict: str, **more) -> Label:
    return Label(url=url, verdict=verdict, **{"role": "training", "at": 1.0, **more})


def merged(*labels: Label):
    samples, counts = add_labels(LISTED, labels, ("Top/Food",))
    found = {
        entry.url: (entry.category, good)
        for entry, good in zip(samples.entries, samples.good, strict=True)
    }
    return found, counts


def test_a_page_labelled_yes_is_a_good_sample():
    found, counts = merged(label("http://c.example/", "yes"))
    assert found["http://c.example/"] == ("Top/Food", True)
    assert counts == LabelCounts(yes=1, no=0, overruled=0)


def test_a_page_labelled_no_is_an_other_sample():
    assert merged(label("http://c.example/", "no"))[0]["http://c.example/"] == (
        OTHER_CATEGORY,
        False,
    )


def test_a_listed_page_labelled_spam_is_no_sample():
    found, counts = merged(label("http://a.example/", "spam"))
    assert found == {"http://b.example/": ("Top/Home", False)}
    assert counts == LabelCounts()


def test_a_label_goes_into_the_category_it_names():
    found, _ = merged(
        label("http://c.example/", "yes", category="Top/Food/Bread"),
        label("http://d.example/", "no", category="Top/Sports"),
    )
    assert found["http://c.example/"] == ("Top/Food/Bread", True)
    assert found["http://d.example/"] == ("Top/Sports", False)


def test_a_category_of_the_wrong_side_is_not_taken():
    found, _ = merged(
        label("http://c.example/", "no", category="Top/Food/Bread"),
        label("http://d.example/", "yes", category="Top/Sports"),
    )
    assert found["http://c.example/"] == (OTHER_CATEGORY, False)
    assert found["http://d.example/"] == ("Top/Food", True)


def test_a_label_beats_the_directory_and_is_counted():
    found, counts = merged(label("http://a.example/", "no"), label("http://b.example/", "yes"))
    assert found == {
        "http://a.example/": (OTHER_CATEGORY, False),
        "http://b.example/": ("Top/Food", True),
    }
    assert counts == LabelCounts(yes=1, no=1, overruled=2)


def test_a_label_that_agrees_leaves_the_category_as_it_was():
    found, counts = merged(label("http://a.example/", "yes"), label("http://b.example/", "no"))
    assert found["http://a.example/"] == ("Top/Food/Cheese", True)
    assert found["http://b.example/"] == ("Top/Home", False)
    assert counts.overruled == 0


def test_evaluation_labels_and_skipped_ones_are_no_samples():
    found, counts = merged(
        label("http://a.example/", "no", role="evaluation"), label("http://b.example/", "skip")
    )
    assert found["http://a.example/"] == ("Top/Food/Cheese", True)
    assert counts == LabelCounts()


def test_training_learns_from_labels_and_counts_them(tmp_path):
    pages = web()
    more = {one.url: one for one in (page("cheese", n) for n in range(900, 920))}
    labels = [label(url, "yes") for url in more]
    labels.append(label(next(url for url in pages if "garden" in url), "yes"))
    made = train_topic(topic(tmp_path, pages), {**pages, **more}.get, now=0.0, labels=labels)
    counts = made.report.samples
    assert (counts.labelled_yes, counts.labelled_no, counts.overruled) == (21, 0, 1)
    assert counts.good == 30 + 21


def test_labels_of_spam_reach_the_spam_classifier_of_the_model_file(tmp_path):
    pages = {one.url: one for one in prose_pages()[:80]}
    cheese = {one.url: one for one in (page("cheese", n) for n in range(40))}
    good, spam = next(iter(pages)), Page("http://spam.test/1", text="buy cheese now " * 60)
    subject = topic(tmp_path, {**pages, **cheese}, good=("Top/Home",))
    listed = {**pages, **cheese, spam.url: spam}
    labels = [label(spam.url, "spam"), label("http://held-out.test/", "spam", role="evaluation")]
    made = train_topic(subject, listed.get, now=0.0, labels=labels)
    save_model(made, tmp_path / "model")
    found = load_model(tmp_path / "model").classifier.spam
    assert found is not None
    assert found.spam_sites == ("spam.test",)
    assert found.evidence(spam) > 0 > found.evidence(pages[good])
