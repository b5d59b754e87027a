"""Directory samples: small, fair, the same each time, and apart from the seeds."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.recorded.page_topics import page_categories
from focused.recorded.sampling import (
    SampledPage,
    SampleSizes,
    candidates_by_category,
    choose,
    first_sentence,
    main,
    sample_directory,
    spread_over_hosts,
    write_directory,
)
from focused.recorded.store import RecordedWeb, RecordedWebWriter
from focused.topic import Topic
from focused.topic_file import load_topic
from focused.web.url import host_of

ROOT = Path(__file__).parents[2]

BEES = "Top/Science/Bees"
HONEY = "Top/Science/Bees/Honey"
OTHER = "Top/Other"


def page(title: str, text: str, description: str = "") -> bytes:
    meta = f'<meta name="description" content="{description}">' if description else ""
    return (
        f"<html><head><title>{title}</title>{meta}</head><body><main><h1>{title}</h1>"
        f"<p>{text}</p></main></body></html>"
    ).encode()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[RecordedWeb]:
    labels = []
    with RecordedWebWriter(tmp_path / "web", "bees", "test") as writer:
        for host, count in (("large.example", 80), ("small.example", 20)):
            for number in range(count):
                url = f"https://{host}/{number}"
                words = f"The bees of hive {number} live on what flowers give. And so on."
                body = page(f"Hive {number}", words, "Hives." if number == 1 else "")
                writer.add(url, 200, {"content-type": "text/html"}, body)
                labels.append((url, BEES if number % 2 else OTHER))
        writer.finish(labels)
    with RecordedWeb.open(tmp_path / "web") as opened:
        yield opened


def test_a_topic_gives_at_most_its_share_of_pages(web: RecordedWeb) -> None:
    sizes = SampleSizes(per_topic=60, background=40, max_share=0.2)
    counts = Counter(p.category for p in sample_directory(web, [BEES], sizes=sizes))
    assert counts == {BEES: 10, OTHER: 10}


def test_a_topic_gives_at_most_the_wanted_number_of_pages(web: RecordedWeb) -> None:
    sizes = SampleSizes(per_topic=3, background=7, max_share=1.0)
    counts = Counter(p.category for p in sample_directory(web, [BEES], sizes=sizes))
    assert counts == {BEES: 3, OTHER: 7}


def test_the_sample_is_the_same_each_time(web: RecordedWeb) -> None:
    assert sample_directory(web, [BEES]) == sample_directory(web, [BEES])


def test_pages_to_avoid_are_never_taken_however_they_are_spelled(
    web: RecordedWeb,
) -> None:
    everything = SampleSizes(per_topic=1000, background=1000, max_share=1.0)
    avoid = ["http://large.example/1", "https://small.example/3#top"]
    taken = {p.url for p in sample_directory(web, [BEES], avoid, everything)}
    assert "https://large.example/1" not in taken
    assert "https://small.example/3" not in taken
    assert "https://large.example/3" in taken


def test_pages_that_robots_txt_forbids_are_never_taken(tmp_path: Path) -> None:
    with RecordedWebWriter(tmp_path / "web", "bees", "test") as writer:
        rules = b"User-agent: *\nDisallow: /secret"
        writer.add("https://a.example/robots.txt", 200, {"content-type": "text/plain"}, rules)
        for path in ("open", "secret"):
            body = page(path, "The bees live on what flowers give them.")
            writer.add(f"https://a.example/{path}", 200, {"content-type": "text/html"}, body)
        writer.finish([("https://a.example/open", BEES), ("https://a.example/secret", BEES)])
    with RecordedWeb.open(tmp_path / "web") as web:
        taken = sample_directory(web, [BEES], sizes=SampleSizes(max_share=1.0))
    assert [p.url for p in taken] == ["https://a.example/open"]


def test_title_and_description_are_the_page_s_own_words(web: RecordedWeb) -> None:
    everything = SampleSizes(per_topic=1000, background=1000, max_share=1.0)
    pages = {p.url: p for p in sample_directory(web, [BEES], sizes=everything)}
    assert pages["https://large.example/1"].description == "Hives."
    assert pages["https://large.example/2"].title == "Hive 2"
    assert (
        pages["https://large.example/2"].description
        == "The bees of hive 2 live on what flowers give."
    )


def test_a_page_of_two_topics_is_left_out() -> None:
    labels = {
        "http://a.example/": [BEES, "Top/Arts"],
        "http://b.example/": [BEES, OTHER],
    }
    found = candidates_by_category(labels, [BEES, "Top/Arts"])
    assert found == {BEES: ["http://b.example/"]}


def test_of_nested_labels_the_lower_one_counts() -> None:
    found = candidates_by_category({"http://a.example/": [BEES, HONEY]}, [BEES, HONEY])
    assert found == {HONEY: ["http://a.example/"]}


def test_small_hosts_have_their_turn_before_large_ones_have_many() -> None:
    urls = [f"https://large.example/{n}" for n in range(400)]
    urls += [f"https://h{n}.example/" for n in range(10)]
    first = Counter(host_of(url) for url in spread_over_hosts(urls)[:60])
    assert len(first) > 5
    assert first["large.example"] >= 20


def test_the_background_goes_by_the_square_root_of_each_category_s_pages() -> None:
    candidates = {
        "Top/A": [f"http://a.example/{n}" for n in range(900)],
        "Top/B": [f"http://b.example/{n}" for n in range(100)],
    }
    taken = choose(candidates, [], SampleSizes(background=40, max_share=0.5))
    assert (len(taken["Top/A"]), len(taken["Top/B"])) == (30, 10)


@given(
    st.lists(
        st.from_regex(r"http://[a-c]\.example/[a-z0-9]{1,6}", fullmatch=True),
        unique=True,
    )
)
def test_spreading_keeps_every_url_and_ignores_the_order_given(urls: list[str]) -> None:
    spread = spread_over_hosts(urls)
    assert sorted(spread) == sorted(urls)
    assert spread == spread_over_hosts(list(reversed(urls)))


def test_a_menu_is_no_sentence() -> None:
    assert first_sentence("Home\nNext topic Previous topic Table of contents and more\n") == ""


def test_a_written_sample_has_one_page_a_line_under_a_header(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sample.tsv"
    write_directory(path, [SampledPage(BEES, "http://a.example/", "A", "")])
    lines = path.read_text().split("\n")
    assert lines == [
        "category\turl\ttitle\tdescription",
        f"{BEES}\thttp://a.example/\tA\t",
        "",
    ]


def test_the_program_takes_topics_and_seeds_from_topic_files(
    web: RecordedWeb, tmp_path: Path
) -> None:
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


def shipped_sample() -> list[tuple[str, str, str]]:
    """Category, URL and title of each line of the sample that ships."""
    text = (ROOT / "training" / "directories" / "docweb.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.removesuffix("\n").split("\n")[1:]]
    return [(category, url, title) for category, url, title, _ in lines]


def shipped_topics() -> list[Topic]:
    paths = (ROOT / "topics").glob("*.toml")
    return [load_topic(path) for path in sorted(paths) if path.stem != "example"]


def test_the_shipped_sample_has_forty_pages_and_more_of_each_shipped_topic() -> None:
    counts = Counter(category for category, _, _ in shipped_sample())
    goods = {good for topic in shipped_topics() for good in topic.training.good}
    assert len(goods) >= 6
    assert min(counts[good] for good in goods) >= 40
    assert sum(n for category, n in counts.items() if category not in goods) >= 500


def test_no_seed_of_a_shipped_topic_is_in_the_shipped_sample() -> None:
    sampled = {url for _, url, _ in shipped_sample()}
    assert not sampled & {seed for topic in shipped_topics() for seed in topic.seeds.urls}


def test_the_shipped_sample_says_what_the_rules_say() -> None:
    ruled = {"Top/Computers/Parallel_Computing", "Top/Science/Math/Statistics"}
    ruled.add("Top/Computers/Security/Cryptography")
    for category, url, title in shipped_sample():
        expected = {category} & ruled
        assert set(page_categories(url, title)) & ruled == expected, url
