"""A classifier and a link scorer of one's own, from scikit-learn.

Crawl with the classifier, then again with the scorer that learned from that crawl. Outside of a
checkout, first tell Scrapy where the spider is (docs/reference/commands.md, "scrapy crawl topic"):

    scrapy crawl topic -a topic=topic.toml -s FOCUSED_MODELS=own_estimators.guide
    scrapy crawl topic -a topic=topic.toml -s FOCUSED_MODELS=own_estimators.guide \\
        -s FOCUSED_POLICY=own_estimators.policy
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from focused.classifier.sklearn_classifier import SklearnTopicClassifier
from focused.crawl.policy import Policy
from focused.directory.directory_reader import load_directory
from focused.directory.sample_set import make_sample_set
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.sklearn_scorer import SklearnLinkScorer
from focused.scrapy_addon.crawl_models import CrawlModels

EARLIER_CRAWL = Path("out/pages.parquet")


def guide(topic):
    """A pipeline over texts as classifier, the apprentice as ever."""
    samples = make_sample_set(load_directory(topic.training.directory), topic.training.good)
    # Titles and descriptions alone: no page is fetched to learn from, so none is left out.
    texts = [f"{entry.title}\n{entry.description}" for entry in samples.entries]
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    pipeline = make_pipeline(letters, LogisticRegression(C=10, class_weight="balanced"))
    classifier = SklearnTopicClassifier(pipeline.fit(texts, samples.good), threshold=0.5)
    return CrawlModels(classifier, Apprentice(classifier), training_urls=frozenset())


def policy(inputs):
    """Links in the order of a boosted ensemble that was fitted on an earlier crawl."""
    pages = pd.read_parquet(EARLIER_CRAWL)
    links = pages[(pages["outcome"] == "fetched") & pages["parent"].notna()]
    parents = links["parent"].map(pages.set_index("url")["relevance"]).fillna(0.5)
    known = np.column_stack([inputs.classifier.score_texts(list(links["anchor"])), parents])
    boosted = HistGradientBoostingClassifier(min_samples_leaf=2, monotonic_cst=[1, 1])
    boosted.fit(known, links["on_topic"].astype(bool))

    def features(visit, links):
        anchors = inputs.classifier.score_texts([link.anchor for link in links])
        return np.column_stack(
            [anchors, np.full(len(links), visit.classification.guiding_relevance)]
        )

    return Policy("boosted", SklearnLinkScorer(boosted, features, ["anchor", "parent"]))
