"""Directory samples: small, balanced, reproducible, without seeds."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from directory_sampling import (
    SampledPage,
    SampleSizes,
    candidates_by_category,
    choose_samples,
    first_sentence,
    main,
    sample_directory,
    spread_over_hosts,
    write_directory,
)
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import ConfigurationError
from focused.topic import Topic
from focused.topic.topic_file import load_topic
from focused.web.urls import host_of
from focused_lab.builders.docweb_rules import page_categories
from focused_lab.recorded_web.recorded_web import RecordedWeb
from tests.support.recorded_web import answer, page, recorded

ROOT = Path(__file__).parents[2]

BEES = "Top/Science/Bees"
HONEY = "Top/Science/Bees/Honey"
OTHER = "Top/Other"


def article(title: str, text: str, description: str = "") -> bytes:
    meta = f'<meta name="description" content="{description}">' if description else ""
    return (
        f"<html><head><title>{title}</title>{meta}</head><body><main><h1>{title}</h1>"
        f"<p>{text}</p></main></body></html>"
    ).encode()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[RecordedWeb]:
    pages, labels = [], []
    for host, count in (("large.example", 80), ("small.example", 20)):
        for number in range(count):
            url = f"https://{host}/{number}"
            words = f"The bees of hive {number} live on what flowers give. And so on."
            body = article(f"Hive {number}", words, "Hives." if number == 1 else "")
            pages.append(page(url, body))
            labels.append((url, BEES if number % 2 else OTHER))
    with recorded(tmp_path / "web", *pages, labels=labels) as opened:
        yield opened


def test_a_topic_gives_at_most_its_share_of_pages(web):
    sizes = SampleSizes(per_topic=60, background=40, max_share=0.2)
    counts = Counter(p.category for p in sample_directory(web, [BEES], sizes=sizes))
    assert counts == {BEES: 10, OTHER: 10}


def test_a_topic_gives_at_most_the_wanted_number_of_pages(web):
    sizes = SampleSizes(per_topic=3, background=7, max_share=1.0)
    counts = Counter(p.category for p in sample_directory(web, [BEES], sizes=sizes))
    assert counts == {BEES: 3, OTHER: 7}


def test_the_sample_is_the_same_each_time(web):
    assert sample_directory(web, [BEES]) == sample_directory(web, [BEES])


def test_pages_to_avoid_are_never_taken_however_they_are_spelled(web):
    everything = SampleSizes(per_topic=1000, background=1000, max_share=1.0)
    avoid = ["http://large.example/1", "https://small.example/3#top"]
    taken = {p.url for p in sample_directory(web, [BEES], avoid, everything)}
    assert "https://large.example/1" not in taken
    assert "https://small.example/3" not in taken
    assert "https://large.example/3" in taken


def test_pages_that_robots_txt_forbids_are_never_taken(tmp_path):
    rules = answer("https://a.example/robots.txt", 200, "User-agent: *\nDisallow: /secret")
    urls = ["https://a.example/open", "https://a.example/secret"]
    pages = [page(url, article(url, "The bees live on what flowers give them.")) for url in urls]
    labels = [(url, BEES) for url in urls]
    with recorded(tmp_path / "web", rules, *pages, labels=labels) as web:
        taken = sample_directory(web, [BEES], sizes=SampleSizes(max_share=1.0))
    assert [p.url for p in taken] == ["https://a.example/open"]


def test_title_and_description_are_the_page_s_own_words(web):
    everything = SampleSizes(per_topic=1000, background=1000, max_share=1.0)
    pages = {p.url: p for p in sample_directory(web, [BEES], sizes=everything)}
    assert pages["https://large.example/1"].description == "Hives."
    assert pages["https://large.example/2"].title == "Hive 2"
    assert (
        pages["https://large.example/2"].description
        == "The bees of hive 2 live on what flowers give."
    )


def test_a_page_of_two_topics_is_excluded():
    labels = {"http://a.example/": [BEES, "Top/Arts"], "http://b.example/": [BEES, OTHER]}
    found = candidates_by_category(labels, [BEES, "Top/Arts"])
    assert found == {BEES: ["http://b.example/"]}


def test_of_nested_labels_the_lower_one_counts():
    found = candidates_by_category({"http://a.example/": [BEES, HONEY]}, [BEES, HONEY])
    assert found == {HONEY: ["http://a.example/"]}


def test_small_hosts_have_their_turn_before_large_ones_have_many():
    urls = [f"https://large.example/{n}" for n in range(400)]
    urls += [f"https://h{n}.example/" for n in range(10)]
    first = Counter(host_of(url) for url in spread_over_hosts(urls)[:60])
    assert len(first) > 5
    assert first["large.example"] >= 20


def test_the_background_goes_by_the_square_root_of_each_category_s_pages():
    candidates = {
        "Top/A": [f"http://a.example/{n}" for n in range(900)],
        "Top/B": [f"http://b.example/{n}" for n in range(100)],
    }
    taken = choose_samples(candidates, [], SampleSizes(background=40, max_share=0.5))
    assert (len(taken["Top/A"]), len(taken["Top/B"])) == (30, 10)


@given(st.lists(st.from_regex(r"http://[a-c]\.example/[a-z0-9]{1,6}", fullmatch=True), unique=True))
def test_spreading_keeps_every_url_and_ignores_the_order_given(urls):
    spread = spread_over_hosts(urls)
    assert sorted(spread) == sorted(urls)
    assert spread == spread_over_hosts(list(reversed(urls)))


def test_a_menu_is_not_a_sentence():
    assert first_sentence("Home\nNext topic Previous topic Table of contents and more\n") == ""


def test_a_written_sample_has_one_page_a_line_under_a_header(tmp_path):
    path = tmp_path / "new" / "sample.tsv"
    write_directory(path, [SampledPage(BEES, "http://a.example/", "A", "")])
    lines = path.read_text().split("\n")
    assert lines == ["category\turl\ttitle\tdescription", f"{BEES}\thttp://a.example/\tA\t", ""]


def test_the_program_takes_topics_and_seeds_from_topic_files(web, tmp_path):
    sample = tmp_path / "sample.tsv"
    sample.write_text(f"{BEES}\thttps://large.example/1\n")
    topic = tmp_path / "bees.toml"
    topic.write_text(
        'name = "bees"\n[seeds]\nurls = ["https://large.example/1"]\n'
        f'[training]\ndirectory = ["sample.tsv"]\ngood = ["{BEES}"]\n'
        '[politeness]\nuser_agent = "TestBot/1 (+https://bees.example/)"\n'
    )
    main([str(web.folder), str(sample), str(topic)])
    lines = [line.split("\t") for line in sample.read_text().splitlines()[1:]]
    assert {line[0] for line in lines} == {BEES, OTHER}
    assert "https://large.example/1" not in {line[1] for line in lines}


def test_a_category_that_came_later_can_be_skipped(web):
    everything = SampleSizes(per_topic=1000, background=1000, max_share=1.0)
    taken = sample_directory(web, [BEES], sizes=everything, unseen=[OTHER])
    assert {page.category for page in taken} == {BEES}
    assert len(taken) == 50


@pytest.mark.parametrize(
    ("per_topic", "background", "max_share"), [(0, 700, 0.15), (60, -1, 0.15), (60, 700, 1.5)]
)
def test_sizes_that_mean_nothing_are_refused(per_topic, background, max_share):
    with pytest.raises(ConfigurationError, match="give at least 1, at least 0 and a share"):
        SampleSizes(per_topic, background, max_share)


def test_the_program_takes_sizes_and_categories_to_pass_over(web, tmp_path):
    sample = tmp_path / "sample.tsv"
    sample.write_text("")
    (tmp_path / "bees.toml").write_text(
        'name = "bees"\n[seeds]\nurls = ["https://large.example/1"]\n'
        f'[training]\ndirectory = ["sample.tsv"]\ngood = ["{BEES}"]\n'
        '[politeness]\nuser_agent = "TestBot/1 (+https://bees.example/)"\n'
    )
    options = ["--per-topic", "3", "--max-share", "0.5", "--background", "9", "--unseen", OTHER]
    main([str(web.folder), str(sample), str(tmp_path / "bees.toml"), *options])
    lines = [line.split("\t")[0] for line in sample.read_text().splitlines()[1:]]
    assert lines == [BEES] * 3


DIRECTORIES = ROOT / "training" / "directories"
SHIPPED = {
    "docweb.tsv": sorted(
        path for path in (ROOT / "topics").glob("*.toml") if path.stem != "example"
    ),
    "docweb-medium.tsv": sorted((ROOT / "topics" / "docweb").glob("*.toml")),
    "foldoc.tsv": sorted((ROOT / "topics" / "foldoc").glob("*.toml")),
    "wordnet.tsv": sorted((ROOT / "topics" / "wordnet").glob("*.toml")),
    "debian.tsv": sorted((ROOT / "topics" / "debian").glob("*.toml")),
}
"""The samples that ship, and the topic files each was made for."""

RULED = {
    "docweb.tsv": {
        "Top/Computers/Parallel_Computing",
        "Top/Science/Math/Statistics",
        "Top/Computers/Security/Cryptography",
    },
    "docweb-medium.tsv": {
        "Top/Computers/HTTP",
        "Top/Computers/Software_Testing",
        "Top/Computers/Text_Processing",
    },
}
"""Categories of each sample that pages earn by the rules alone."""


def shipped_sample(name: str) -> list[tuple[str, str, str]]:
    """Category, URL and title of each line of a sample that ships."""
    text = (DIRECTORIES / name).read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.removesuffix("\n").split("\n")[1:]]
    return [(category, url, title) for category, url, title, _ in lines]


def shipped_topics(name: str) -> list[Topic]:
    return [load_topic(path) for path in SHIPPED[name]]


@pytest.mark.parametrize(
    ("name", "topics", "pages"),
    [
        ("docweb.tsv", 6, 40),
        ("docweb-medium.tsv", 4, 40),
        ("foldoc.tsv", 6, 30),
        ("wordnet.tsv", 6, 60),
        ("debian.tsv", 6, 30),
    ],
)
def test_a_shipped_sample_has_enough_pages_of_each_of_its_topics(name, topics, pages):
    counts = Counter(category for category, _, _ in shipped_sample(name))
    goods = {good for topic in shipped_topics(name) for good in topic.training.good}
    assert len(goods) == topics
    assert min(counts[good] for good in goods) >= pages
    assert sum(n for category, n in counts.items() if category not in goods) >= 500


@pytest.mark.parametrize("name", SHIPPED)
def test_every_topic_is_learned_from_the_sample_that_was_made_for_it(name):
    assert {topic.training.directory for topic in shipped_topics(name)} == {(DIRECTORIES / name,)}


@pytest.mark.parametrize("name", SHIPPED)
def test_no_seed_of_a_shipped_topic_is_in_its_sample(name):
    sampled = {url for _, url, _ in shipped_sample(name)}
    assert not sampled & {seed for topic in shipped_topics(name) for seed in topic.seeds.urls}


def test_shipped_topics_have_names_of_their_own_and_write_beside_each_other():
    topics = [topic for name in SHIPPED for topic in shipped_topics(name)]
    assert len(topics) == 28
    for places in (
        {topic.name for topic in topics},
        {topic.training.model for topic in topics},
        {topic.output.folder for topic in topics},
    ):
        assert len(places) == len(topics)
    assert {topic.training.model.parent for topic in topics} == {ROOT / "models"}
    assert {topic.output.folder.parent for topic in topics} == {ROOT / "crawls"}


@pytest.mark.parametrize("name", RULED)
def test_a_shipped_sample_says_what_the_rules_say(name):
    for category, url, title in shipped_sample(name):
        earned = set(page_categories(url, title)) & RULED[name]
        assert earned == {category} & RULED[name], url
