"""What a site's pages and the sites that link to it tell about it."""

import struct

import pytest

from focused.spam.site_trust import (
    LABELLED_SITE_PROBABILITY,
    MIN_PAGES_TO_CONVICT,
    MIN_SUSPICION,
    SPAM_SITE_SHARE,
    SiteTrust,
)
from focused.spam.spam_classifier import SpamClassifier
from focused.spam.spam_training import fit_spam_classifier
from focused.storage.tables import Tables
from focused.web.host_names import site_key
from tests.support.prose import prose_pages

A, B, SEED = "http://a.test/1", "http://b.test/1", "http://seed.test/"


@pytest.fixture(scope="module")
def model() -> SpamClassifier:
    fitted = fit_spam_classifier(prose_pages()[::2], seed=1)
    assert fitted is not None
    return fitted


@pytest.fixture
def trust(tables: Tables) -> SiteTrust:
    return SiteTrust(tables, [SEED])


def learn(trust: SiteTrust, model: SpamClassifier, url: str, evidence: float, times: int) -> None:
    for _ in range(times):
        trust.learn(url, evidence, (), model)


def test_a_new_site_has_the_share_of_spam_among_sites(trust):
    assert trust.site_probability(A) == pytest.approx(SPAM_SITE_SHARE)


def test_pages_that_read_like_made_text_convict_their_site(trust, model):
    learn(trust, model, A, model.spam_mean, MIN_PAGES_TO_CONVICT)
    assert trust.is_spam_site(A)
    assert not trust.is_spam_site(B)


def test_one_page_convicts_no_site(trust, model):
    learn(trust, model, A, model.spam_mean, 1)
    assert not trust.is_spam_site(A)
    assert trust.spam_probability(A, model.good_mean, model) < 0.5


def test_a_site_labelled_spam_is_suspect_before_it_is_read(trust, model):
    trust.set_spam_sites(["a.test"])
    assert trust.site_probability(A) == LABELLED_SITE_PROBABILITY
    assert trust.spam_probability(A, None, model) > 0.5
    assert trust.site_probability(B) == pytest.approx(SPAM_SITE_SHARE)


def test_a_label_overrules_the_trust_in_a_seed(trust):
    trust.set_spam_sites(["seed.test"])
    assert trust.site_probability(SEED) == LABELLED_SITE_PROBABILITY


def test_good_pages_overrule_a_label(trust, model):
    trust.set_spam_sites(["a.test"])
    learn(trust, model, A, model.good_mean, 20)
    assert not trust.is_spam_site(A)


def test_good_pages_keep_their_site_good_however_many_they_are(trust, model):
    learn(trust, model, A, model.good_mean, 100)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_hosts_of_one_domain_are_one_site(trust, model):
    learn(trust, model, "http://one.a.test/", model.spam_mean, MIN_PAGES_TO_CONVICT)
    assert trust.is_spam_site("http://two.a.test/")


def test_links_from_spam_sites_make_a_site_suspect(trust, model):
    for number in range(5):
        site = f"http://spam{number}.test/"
        learn(trust, model, site, model.spam_mean, 10)
        trust.learn(site, model.spam_mean, [A], model)
    assert trust.site_probability(A) > 0.3


def test_the_order_of_linking_sites_does_not_matter_however_many_there_are(trust, model):
    sites = [f"http://site{number}.test/" for number in range(40)]
    for site in sites[:20]:
        learn(trust, model, site, model.spam_mean, 10)
    for target, order in ((A, sites), (B, sites[::-1])):
        for site in order:
            trust.learn(site, None, [target], model)
    assert trust.site_probability(A) == trust.site_probability(B) > SPAM_SITE_SHARE


def test_links_from_good_sites_make_a_site_less_suspect(trust, model):
    for number in range(5):
        trust.learn(f"http://good{number}.test/", model.good_mean, [A], model)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_a_site_that_a_person_chose_is_no_spam_whatever_its_pages_say(trust, model):
    learn(trust, model, SEED, model.spam_mean, 20)
    assert trust.site_probability(SEED) == 0.0
    assert not trust.is_spam_site(SEED)
    assert trust.spam_probability(SEED, model.spam_mean, model) == 0.0


def test_pages_of_trusted_sites_show_how_good_pages_score(trust, model):
    between = (model.good_mean + model.spam_mean) / 2
    learn(trust, model, A, between, 10)
    suspect = trust.site_probability(A)
    learn(trust, model, SEED, between, 100)
    learn(trust, model, B, between, 10)
    assert trust.site_probability(B) < suspect


def test_what_was_learned_outlasts_the_process(trust, model, tables):
    learn(trust, model, A, model.spam_mean, 10)
    trust.learn(A, model.spam_mean, [B], model)
    again = SiteTrust(tables, [SEED])
    for url in (A, B):
        assert again.site_probability(url) == trust.site_probability(url)


def test_signs_are_stored_beside_the_links_to_a_site(trust, model, tables):
    trust.learn(B, None, [A], model)
    for origin in (SEED, B, "http://c.test/"):
        trust.learn_copy(A, origin, was_new=False)
    learn(trust, model, B, model.spam_mean, MIN_PAGES_TO_CONVICT)
    again = SiteTrust(tables, [SEED])
    assert again.has_signs(A)
    assert not again.has_signs(B)
    assert again.site_probability(A) == trust.site_probability(A) > 0.5


def learn_copies(trust: SiteTrust, count: int, *, origins: int = 1, was_new: bool = False) -> None:
    for number in range(count):
        trust.learn_copy(A, f"http://origin{number % origins}.test/{number}", was_new=was_new)


def test_a_site_of_copies_of_several_sites_is_spam(trust):
    learn_copies(trust, 5, origins=3)
    assert trust.is_spam_site(A)


def test_a_few_copies_close_no_site(trust):
    learn_copies(trust, 4, origins=3)
    assert not trust.is_spam_site(A)


def test_copies_of_one_site_must_be_many(trust):
    learn_copies(trust, 12)
    assert not trust.is_spam_site(A)
    learn_copies(trust, 3)
    assert trust.is_spam_site(A)


def test_a_mirror_with_as_many_pages_of_its_own_is_no_scraper(trust, model):
    learn(trust, model, A, model.good_mean, 10)
    learn_copies(trust, 10)
    assert trust.site_probability(A) < MIN_SUSPICION


def test_pages_that_quote_several_sites_are_few_on_a_good_site(trust, model):
    learn(trust, model, A, model.good_mean, 100)
    learn_copies(trust, 3, origins=3, was_new=True)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_a_scraper_whose_other_originals_are_unknown_is_spam(trust, model):
    learn(trust, model, A, model.good_mean, 100)
    learn_copies(trust, 25, origins=3, was_new=True)
    assert trust.is_spam_site(A)


def test_pages_that_turn_out_to_be_copies_are_no_longer_the_sites_own(trust, model):
    learn(trust, model, A, model.good_mean, 6)
    learn_copies(trust, 6, origins=3, was_new=True)
    assert trust.is_spam_site(A)


def exchange(trust: SiteTrust, model: SpamClassifier, url: str, partners: int) -> None:
    for number in range(partners):
        partner = f"http://partner{number}.test/"
        trust.learn(partner, model.good_mean, [url], model)
        trust.learn(url, model.good_mean, [partner], model)


def test_a_site_that_exchanges_links_with_many_others_is_more_probably_spam(trust, model):
    learn(trust, model, A, model.good_mean, 3)
    before = trust.site_probability(A)
    exchange(trust, model, A, 12)
    assert trust.site_probability(A) > 5 * before


def test_exchanges_alone_convict_no_site_however_many_they_are(trust, model):
    exchange(trust, model, A, 100)
    assert not trust.is_spam_site(A)


def test_links_one_way_are_no_exchange(trust, model):
    for number in range(12):
        trust.learn(A, model.good_mean, [f"http://partner{number}.test/"], model)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_exchanges_of_a_site_with_many_pages_are_chance(trust, model):
    learn(trust, model, A, model.good_mean, 100)
    exchange(trust, model, A, 12)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_links_exchanged_with_trusted_sites_count_for_nothing(trust, model):
    seeds = [f"http://partner{number}.test/" for number in range(12)]
    trust.trust(seeds)
    exchange(trust, model, A, 12)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_spam_that_links_to_a_site_with_pages_of_its_own_says_little_of_it(trust, model):
    learn(trust, model, A, model.good_mean, 10)
    for number in range(8):
        site = f"http://spam{number}.test/"
        learn(trust, model, site, model.spam_mean, 10)
        trust.learn(site, model.spam_mean, [A], model)
    assert trust.site_probability(A) < SPAM_SITE_SHARE


def test_a_trusted_site_has_the_original(trust):
    assert trust.is_original(SEED, A)
    assert not trust.is_original(A, SEED)


def test_a_suspect_site_has_no_original(trust):
    learn_copies(trust, 5, origins=3)
    assert trust.is_original(B, A)
    assert not trust.is_original(A, B)


def test_of_two_unknown_sites_neither_has_the_original_by_evidence(trust):
    assert not trust.is_original(A, B)
    assert not trust.is_original(B, A)


def test_copies_are_stored(trust, tables):
    learn_copies(trust, 5, origins=3)
    assert SiteTrust(tables, [SEED]).site_probability(A) == trust.site_probability(A)


def test_pages_without_evidence_leave_the_mean_of_the_others(trust, model):
    learn(trust, model, A, model.spam_mean, 10)
    suspect = trust.site_probability(A)
    for _ in range(50):
        trust.learn(A, None, (), model)
    assert trust.site_probability(A) == pytest.approx(suspect)


def test_what_linking_sites_say_fades_with_pages_without_evidence_too(trust, model):
    for number in range(5):
        site = f"http://spam{number}.test/"
        learn(trust, model, site, model.spam_mean, 10)
        trust.learn(site, model.spam_mean, [A], model)
    suspect = trust.site_probability(A)
    for _ in range(50):
        trust.learn(A, None, (), model)
    assert trust.site_probability(A) < suspect / 3


def test_more_pages_than_a_row_counts_change_nothing(trust, model, tables):
    tables.put("site_trust", site_key(A), struct.pack(">HHf", 0xFFFF, 0xFFFF, float(0xFFFF)))
    convicted = trust.site_probability(A)
    for evidence in (model.good_mean, None):
        trust.learn(A, evidence, (), model)
    assert trust.site_probability(A) == convicted
