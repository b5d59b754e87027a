"""WordNet: synsets as a web of small pages; topic domains become labels."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import RecordedWebError
from focused_lab.builders.wordnet import (
    DATA_FILES,
    HOME,
    Pointer,
    Synset,
    address,
    build_wordnet,
    choose_synsets,
    domains_by_synset,
    inherited_domains,
    parse_synset,
    plain_gloss,
    read_synsets,
    wordnet_pages,
)
from focused_lab.recorded_web.recorded_web import RecordedWeb

LICENCE = "  1 This software and database is being provided to you\n"

SPORT, BASEBALL, HIT, HOMER, THING, FAR = (f"{number:08}" for number in range(1, 7))
NOUNS = "".join(
    f"{line}\n"
    for line in (
        f"{SPORT} 04 n 02 sport 0 athletics 0 002 ~ {BASEBALL} n 0000 @ {THING} n 0000 | play",
        f"{BASEBALL} 04 n 01 baseball 0 001 @ {SPORT} n 0000 | a game with a bat",
        f"{HIT} 04 n 01 base_hit 0 003 ;c {BASEBALL} n 0000 @ {THING} n 0000 ~ {HOMER} n 0000"
        ' | (baseball) a <good> stroke; "his hit"',
        f"{HOMER} 04 n 02 homer 0 home_run 0 001 @ {HIT} n 0000 | (baseball) a far hit",
        f"{THING} 03 n 01 thing 0 003 ~ {SPORT} n 0000 ~ {HIT} n 0000 ~ {FAR} n 0000 | anything",
        f"{FAR} 03 n 01 far_thing 0 001 @ {THING} n 0000 | too far away",
    )
)
BAD_LINES = [
    "nonsense",
    "00000009 03 n 02 one 0 000 | words are missing",
    "00000009 03 x 01 one 0 000 | no part of speech",
    "00000009 03 n 01 one 0 002 @ 00000001 n 0000 | a pointer is missing",
    "00000009 03 n 01 one 0 000",
]


def database(folder: Path, nouns: str = NOUNS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in DATA_FILES:
        (folder / name).write_text(LICENCE + (nouns if name == "data.noun" else ""))
    return folder


@pytest.fixture
def synsets(tmp_path: Path) -> dict[str, Synset]:
    return read_synsets(database(tmp_path / "wordnet"))


@pytest.fixture
def pages(synsets: dict[str, Synset]) -> dict[str, str]:
    """What stands on the pages, by URL."""
    domains = domains_by_synset(synsets)
    chosen = choose_synsets(synsets, domains)
    return {page.url: page.body for page in wordnet_pages(chosen, domains)}


def test_a_line_is_read_as_the_manual_has_it():
    line = (
        "00001740 00 a 02 able 0 well-off(p) 1 002 = 05200169 n 0000 ! 00002098 a 0101 | (of x) can"
    )
    assert parse_synset(line) == Synset(
        "adj-00001740",
        ("able", "well-off"),
        "(of x) can",
        (Pointer("=", "noun-05200169"), Pointer("!", "adj-00002098")),
    )


def test_the_number_of_words_is_hexadecimal():
    words = " ".join(f"w{number} 0" for number in range(10))
    assert len(parse_synset(f"00000001 03 n 0a {words} 000 | ten").words) == 10


def test_frames_of_a_verb_are_skipped():
    verb = parse_synset("00000001 29 v 01 breathe 0 000 02 + 02 00 + 08 00 | take in air")
    assert (verb.part_of_speech, verb.pointers) == ("verb", ())


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_damaged_line_is_named(tmp_path, line):
    with pytest.raises(RecordedWebError, match=r"data\.noun, line 8"):
        read_synsets(database(tmp_path, NOUNS + line + "\n"))


@given(line=st.text())
def test_any_other_text_is_a_value_error(line):
    try:
        parse_synset(line)
    except ValueError:
        return
    assert " | " in line


def test_a_pointer_that_leads_nowhere_is_an_error(tmp_path):
    lost = "00000009 03 n 01 one 0 001 @ 00000404 n 0000 | lost\n"
    with pytest.raises(RecordedWebError, match="noun-00000009 points at noun-00000404"):
        read_synsets(database(tmp_path, NOUNS + lost))


def test_a_missing_file_is_an_error(tmp_path):
    (database(tmp_path) / "data.verb").unlink()
    with pytest.raises(RecordedWebError, match=r"data\.verb cannot be read"):
        read_synsets(tmp_path)


def test_a_term_belongs_to_its_domain_and_a_domain_to_itself(synsets):
    domains = domains_by_synset(synsets)
    assert domains[f"noun-{HIT}"] == (f"noun-{BASEBALL}",)
    assert domains[f"noun-{BASEBALL}"] == (f"noun-{BASEBALL}",)
    assert f"noun-{THING}" not in domains


def test_a_domain_belongs_to_the_domains_that_it_is_a_kind_of(tmp_path):
    race = f"00000009 04 n 01 race 0 001 ;c {SPORT} n 0000 | a contest of speed\n"
    domains = domains_by_synset(read_synsets(database(tmp_path, NOUNS + race)))
    assert domains[f"noun-{HIT}"] == (f"noun-{SPORT}", f"noun-{BASEBALL}")
    assert domains["noun-00000009"] == (f"noun-{SPORT}",)


def test_kinds_of_a_term_are_terms_of_its_domain(synsets):
    found = inherited_domains(synsets, domains_by_synset(synsets))
    assert found[f"noun-{HOMER}"] == {f"noun-{BASEBALL}"}
    assert f"noun-{THING}" not in found


def test_kinds_of_a_domain_are_no_terms_of_it(tmp_path):
    softball = f"00000009 04 n 01 softball 0 001 @ {BASEBALL} n 0000 | a ball that is softer\n"
    nouns = NOUNS.replace("baseball 0 001 @", "baseball 0 002 ~ 00000009 n 0000 @") + softball
    synsets = read_synsets(database(tmp_path, nouns))
    assert "noun-00000009" not in inherited_domains(synsets, domains_by_synset(synsets))


def test_the_web_holds_terms_domains_and_what_their_lists_lead_to(synsets):
    chosen = choose_synsets(synsets, domains_by_synset(synsets))
    assert list(chosen) == [f"noun-{o}" for o in (HIT, BASEBALL, HOMER, SPORT, THING)]


def test_the_domain_stands_neither_in_the_gloss_nor_as_a_link(pages):
    page = pages[f"{HOME}noun/base_hit-{HIT}"]
    assert "<p>a &lt;good&gt; stroke; &quot;his hit&quot;.</p>" in page
    before_menus = page.partition('<p class="nearby">')[0]
    assert "baseball" not in before_menus


@pytest.mark.parametrize(
    ("gloss", "pointers", "left"),
    [
        ("(baseball) a hit", (), "a hit"),
        ("(sports) a hit", (Pointer(";c", "noun-1"),), "a hit"),
        ("(of a ball) hit", (), "(of a ball) hit"),
        ("a hit (baseball)", (), "a hit (baseball)"),
    ],
)
def test_a_domain_before_the_gloss_goes_and_all_else_stays(gloss, pointers, left):
    assert plain_gloss(Synset("noun-2", ("hit",), gloss, pointers), {"baseball"}) == left


def test_relations_are_lists_of_links_under_headings(pages):
    page = pages[f"{HOME}noun/base_hit-{HIT}"]
    link = f'<li><a href="{HOME}noun/homer-{HOMER}">homer, home run</a></li>'
    assert f"<h2>Kinds</h2>\n<ul>\n{link}" in page


def test_relations_out_of_the_web_are_excluded(pages):
    assert "far_thing" not in pages[f"{HOME}noun/thing-{THING}"]


def test_other_senses_of_a_word_are_linked(tmp_path):
    ball = Synset("noun-1", ("ball",), "round", ())
    dance = Synset("noun-2", ("ball", "dance"), "a party", ())
    pages = {page.url: page.body for page in wordnet_pages({"noun-1": ball, "noun-2": dance}, {})}
    assert f'<h2>Other senses</h2>\n<ul>\n<li><a href="{address(dance)}">' in pages[address(ball)]


def test_every_synset_can_be_reached_from_the_home_page(pages):
    assert f'href="{HOME}contents/b.html"' in pages[HOME]
    assert f'href="{HOME}noun/baseball-{BASEBALL}"' in pages[f"{HOME}contents/b.html"]


def test_words_are_quoted_in_addresses():
    assert address(Synset("noun-7", ("A/C 100%",), "", ())) == f"{HOME}noun/A/C_100%25-7"


def test_the_package_becomes_a_labelled_web(tmp_path, debian):
    source = database(tmp_path / "files")
    debian.add(
        "wordnet-base",
        {f"/usr/share/wordnet/{name}": (source / name).read_bytes() for name in DATA_FILES},
    )
    built = build_wordnet(tmp_path / "web", tmp_path / "cache", lambda line: None)
    assert (built.fresh, built.pages) == (True, 10)
    baseball = {"Top/Domains/Baseball"}
    with RecordedWeb.open(tmp_path / "web") as web:
        assert web.labels == {
            f"{HOME}noun/{word}-{offset}": baseball
            for word, offset in (("baseball", BASEBALL), ("base_hit", HIT), ("homer", HOMER))
        }
    assert not build_wordnet(tmp_path / "web", tmp_path / "cache", lambda line: None).fresh
