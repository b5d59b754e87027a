"""Samples that may mislead training, and their warnings."""

import random
import re

import numpy as np
import pytest

from focused.classifier.estimators import TrainingOptions
from focused.classifier.model_file import save_model
from focused.classifier.sample_texts import SampleWords, gather_samples
from focused.classifier.topic_training import (
    MAX_REGRESSION_SAMPLES,
    _draw_samples,
    fit_classifier,
    train_topic,
)
from focused.directory import DirectoryEntry
from focused.directory.sample_set import SampleSet
from focused.errors import TrainingError
from focused.web.page import Page
from tests.support.made_up_topic import CHEESE, COMMON, page, topic, trained, web

FOREIGN = {
    "German": "Der Käse reift mehrere Monate im Keller und wird jede Woche gewendet. " * 9,
    "Russian": "Сыр созревает несколько месяцев в подвале и каждую неделю его переворачивают. " * 9,
    "Chinese": "奶酪在地窖里成熟几个月，每周翻转一次。牛奶来自高山牧场。" * 9,
    "Thai": "ชีสบ่มในห้องใต้ดินเป็นเวลาหลายเดือนและพลิกกลับทุกสัปดาห์" * 9,
    "Arabic": "ينضج الجبن عدة أشهر في القبو ويقلب كل أسبوع مرة واحدة. " * 9,
    "Hebrew": "הגבינה מבשילה כמה חודשים במרתף והופכים אותה כל שבוע. " * 9,
    "Hindi": "पनीर कई महीनों तक तहखाने में पकता है और हर हफ्ते पलटा जाता है। " * 9,
    "Korean": "치즈는 지하실에서 몇 달 동안 숙성되며 매주 뒤집어 줍니다. " * 9,
}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("cheese")).classifier


@pytest.mark.parametrize("language", FOREIGN)
def test_a_page_in_another_language_is_unknown(classifier, language):
    found = classifier.classify(Page("http://a.example/", text=FOREIGN[language]))
    assert not found.known
    assert not found.on_topic
    assert found.relevance == classifier.calibration.prior


def test_a_foreign_page_with_some_familiar_words_is_unknown(classifier):
    text = FOREIGN["German"] * 3 + " brie cheddar rennet curd home page contact news"
    assert not classifier.classify(Page("http://a.example/", text=text)).known


def test_pages_of_the_samples_language_are_known(classifier):
    pages = [page(kind, n) for kind in ("cheese", "garden") for n in range(400, 500)]
    assert np.mean([classifier.classify(one).known for one in pages]) > 0.97


SYLLABLES = {
    "Thai": "ชีส นม เนย ข้าว ปลา หมู ไก่ ผัก ดิน น้ำ ฟ้า ฝน",
    "Arabic": "جبن حليب زبدة أرز سمك لحم دجاج خضار تربة ماء سماء مطر",
    "Hebrew": "גבינה חלב חמאה אורז דג בשר עוף ירק אדמה מים שמים גשם",
    "Hindi": "पनीर दूध मक्खन चावल मछली मांस मुर्गी सब्जी मिट्टी पानी आकाश बारिश",
    "Korean": "치즈 우유 버터 쌀밥 생선 고기 닭고기 채소 흙밭 물가 하늘 소나기",
    "Chinese": "奶酪 牛奶 黄油 米饭 鱼肉 猪肉 鸡肉 蔬菜 泥土 河水 天空 下雨",
    "mixed": "cheese Käse сыр 奶酪 ชีส جبن garden Garten сад 花园 สวน حديقة",
}


@pytest.mark.parametrize("language", SYLLABLES)
def test_a_topic_is_learned_in_any_language(tmp_path, language):
    own = SYLLABLES[language].split()
    made = {}
    for url in web():
        rng = random.Random(url)
        ours = own[:6] if "cheese" in url else own[6:]
        text = " ".join(rng.choices(ours, k=25) + rng.choices(own, k=50))
        made[url] = Page(url, title=" ".join(ours[:2]), text=text)
    assert trained(tmp_path, made).report.trial.calibrated.auc > 0.95


def card_of(model, tmp_path) -> str:
    return save_model(model, tmp_path / "made.joblib").read_text()


def test_five_good_samples_are_enough_and_the_card_calls_its_figures_rough(tmp_path):
    model = trained(tmp_path, web(cheese=5))
    assert any("5 good samples: the metrics are rough" in one for one in model.report.warnings)
    assert "## Warnings" in card_of(model, tmp_path)


def test_sound_samples_give_no_warning(tmp_path):
    assert trained(tmp_path).report.warnings == ()


def test_pages_in_both_classes_are_good_and_cause_a_warning(tmp_path):
    pages = web()
    copies = [url for url in pages if "garden" in url][:10]
    sources = [url for url in pages if "cheese" in url][:10]
    for copy, source in zip(copies, sources, strict=True):
        pages[copy] = Page(copy, title=pages[source].title, text=pages[source].text)
    model = trained(tmp_path, pages)
    assert model.report.samples.contradictions == 10
    assert (model.report.samples.good, model.report.samples.other) == (30, 80)
    assert any("training.good" in one for one in model.report.warnings)


def test_copies_on_one_side_are_counted_once(tmp_path):
    pages = web()
    urls = [url for url in pages if "cheese" in url]
    for url in urls[20:]:
        pages[url] = Page(url, title=pages[urls[0]].title, text=pages[urls[0]].text)
    counts = trained(tmp_path, pages).report.samples
    assert (counts.good, counts.copies) == (20, 10)


def test_copies_alone_raise_an_error(tmp_path):
    pages = {url: Page(url, title="x", text="brie " * 40) for url in web()}
    with pytest.raises(TrainingError, match="119 do so word for word"):
        trained(tmp_path, pages)


def test_classes_in_different_languages_cause_a_warning(tmp_path):
    pages = {
        url: Page(url, title=one.title, text=one.text, language="fr" if "cheese" in url else "en")
        for url, one in web().items()
    }
    warnings = trained(tmp_path, pages).report.warnings
    assert any(re.search(r"'fr'.*'en'.*language instead of the topic", one) for one in warnings)


def test_a_page_of_ten_megabytes_trains_and_is_classified(tmp_path, classifier):
    pages = web()
    large = next(url for url in pages if "cheese" in url)
    pages[large] = Page(large, title="cheese", text=" ".join(CHEESE + COMMON) * 70_000)
    assert len(pages[large].text) > 10_000_000
    assert trained(tmp_path, pages).report.samples.good == 30
    assert classifier.classify(pages[large]).on_topic


def test_a_recall_is_granted_on_held_out_samples_and_the_card_names_it(tmp_path):
    model = trained(tmp_path, wish={"recall": 1.0})
    assert model.report.trial.calibrated.recall == 1.0
    assert "chosen for a recall of 1.00" in card_of(model, tmp_path)


def test_an_unreachable_precision_causes_a_warning_with_the_best_one(tmp_path):
    rng = np.random.default_rng(0)
    pages = {}
    for number in range(120):
        kind = "cheese" if number < 40 else "garden"
        url = f"https://{kind}{number % 6}.example/{kind}/{number}"
        often = "brie " * int(rng.integers(0, 4 if kind == "cheese" else 3))
        pages[url] = Page(url, text=often + " ".join(rng.choice(COMMON, 60)))
    model = trained(tmp_path, pages, wish={"precision": 0.99})
    assert not model.report.trial.granted
    assert any("no threshold gives a precision of 0.99" in one for one in model.report.warnings)


def test_a_higher_sample_weight_has_more_influence():
    def gains(weight: float) -> float:
        pages = web()
        odd = [url for url in pages if "cheese" in url][:3]
        entries, good = [], []
        for url in pages:
            category = "Top/Food" if "cheese" in url else "Top/Home"
            entries.append(DirectoryEntry(category, url, weight=weight if url in odd else 1.0))
            good.append("cheese" in url)
            if url in odd:
                pages[url] = Page(url, title="stilton", text=f"stilton {pages[url].text}")
        sample_words = SampleWords()
        samples = gather_samples(SampleSet(tuple(entries), tuple(good)), pages.get, sample_words)
        classifier = fit_classifier(
            samples, sample_words, TrainingOptions("naive-bayes")
        ).classifier
        return float(classifier.weights[classifier.vocabulary.index["stilton"]])

    assert gains(8.0) > gains(1.0) > 0


def test_very_many_samples_are_sampled_per_class():
    good = np.arange(3 * MAX_REGRESSION_SAMPLES) % 100 == 0
    drawn = _draw_samples(good, seed=1)
    assert len(drawn) == MAX_REGRESSION_SAMPLES
    assert good[drawn].sum() == good.sum()
    assert np.all(np.diff(drawn) > 0)


def test_good_samples_alone_suffice_with_the_background(tmp_path):
    pages = web(cheese=40, garden=0)
    made = topic(tmp_path, pages, background=True)
    model = train_topic(made, pages.get, now=0.0)
    counts = model.report.samples
    assert counts.background == counts.other > 300
    assert counts.background * counts.background_weight == pytest.approx(300, rel=0.05)
    assert any(
        "only other samples are the general background" in one for one in model.report.warnings
    )
    classifier = model.classifier
    assert np.mean([classifier.classify(page("cheese", n)).on_topic for n in range(500, 530)]) > 0.9
    assert not classifier.classify(Page("http://a.example/", text=FOREIGN["German"])).known


def test_enough_others_leave_the_background_out(tmp_path):
    pages = web(garden=300)
    made = topic(tmp_path, pages, background=True)
    assert train_topic(made, pages.get, now=0.0).report.samples.background == 0
