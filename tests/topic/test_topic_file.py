"""The topic file and its errors."""

import json
import re
import sys
import tomllib
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.site_hooks import with_generated
from focused.errors import ConfigurationError
from focused.topic import (
    ESTIMATORS,
    Budget,
    Cluster,
    DeepWeb,
    Output,
    Politeness,
    Revisit,
    Scope,
    Training,
    adapt_to_recorded_web,
    topic_to_json,
)
from focused.topic.login import Login
from focused.topic.topic_file import load_topic
from focused.topic.topic_keys import NO_LIMIT, TOPIC_KEYS

SECTIONS = {name: tuple(key.name for key in keys) for name, keys in TOPIC_KEYS.items()}
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "topics" / "example.toml"
REFERENCE = ROOT / "docs" / "reference" / "topic-files.md"

HEAD = 'name = "databases"\n'
SEEDS = '[seeds]\nurls = ["https://docs.python.org/3/"]\n'
TRAINING = '[training]\ndirectory = ["samples.tsv"]\ngood = ["Top/Databases"]\n'
POLITENESS = '[politeness]\nuser_agent = "Bot/1 (+https://bot.example/about)"\n'
SMALLEST = HEAD + SEEDS + TRAINING + POLITENESS
NO_CATEGORIES = "training.good: is empty; name the categories that are the topic"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "samples.tsv").write_text("Top/Databases\thttp://a.example/\tA\tB\n")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaints(folder: Path, text: str) -> list[str]:
    """The lines of the error that ``text`` earns, without the file's name."""
    path = write(folder, text)
    with pytest.raises(ConfigurationError) as caught:
        load_topic(path)
    lines = str(caught.value).splitlines()
    where = re.compile(rf"{re.escape(str(path))}:(\d+:)? ")
    assert all(map(where.match, lines))
    return [where.sub("", line, count=1) for line in lines]


def complaint(folder: Path, text: str) -> str:
    (only,) = complaints(folder, text)
    return only


def test_labels_stand_beside_the_model_by_default(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write(folder, SMALLEST)
    topic = load_topic(Path("mine.toml"))
    assert (topic.training.model, topic.training.labels) == (
        Path("databases.joblib"),
        Path("databases.labels.jsonl"),
    )


def test_the_smallest_topic_file_leaves_all_else_to_defaults(folder):
    topic = load_topic(write(folder, SMALLEST))
    assert topic.name == "databases"
    assert topic.seeds.urls == ("https://docs.python.org/3/",)
    assert topic.training.good == ("Top/Databases",)
    assert topic.scope == Scope()
    assert topic.budget == Budget()
    assert topic.politeness == Politeness(user_agent="Bot/1 (+https://bot.example/about)")
    assert (topic.output.warc, topic.output.parquet) == ("responses", True)


def test_paths_are_relative_to_the_topic_file(folder):
    topic = load_topic(write(folder, SMALLEST))
    assert topic.training.directory == (folder / "samples.tsv",)
    assert topic.training.model == folder / "databases.joblib"
    assert topic.training.labels == folder / "databases.labels.jsonl"


def test_a_topic_without_a_folder_is_crawled_into_one_beside_where_the_command_runs(folder):
    topic = load_topic(write(folder, SMALLEST))
    assert topic.output.folder == Path("crawls/databases")
    assert topic.crawl_folder("focused") == Path("crawls/databases")
    assert topic.crawl_folder("bfs") == Path("crawls/databases-bfs")


def test_a_path_upwards_is_written_the_short_way(folder):
    topic = load_topic(write(folder, SMALLEST + '[output]\nfolder = "../harvest"\n'))
    assert topic.output.folder == folder.parent / "harvest"


CLUSTER = (
    SMALLEST
    + """
[cluster]
storage = "s3://me:secret@db.example/crawls"
"""
)


def test_the_processes_of_a_crawl_have_a_storage_and_a_unit(folder):
    cluster = load_topic(write(folder, CLUSTER)).cluster
    assert cluster == Cluster("s3://me:secret@db.example/crawls", "domain")


def test_a_topic_as_json_has_no_password_of_its_cluster(folder):
    assert "secret" not in str(topic_to_json(load_topic(write(folder, CLUSTER))))


LOGIN = """
[login]
hosts = ["papers.example", "ID.papers.example:8443"]
url = "https://papers.example/login"
username = "me"
password = "env:PAPERS"
"""


def test_a_login_has_its_hosts_and_where_its_secrets_are(folder):
    (login,) = load_topic(write(folder, SMALLEST + LOGIN)).login
    assert login.hosts == ("papers.example", "id.papers.example:8443")
    assert (login.method, login.username, login.password) == ("form", "me", "env:PAPERS")


def test_there_may_be_several_logins(folder):
    text = """
[[login]]
hosts = ["a.example"]
method = "bearer"
token = "keyring:papers/me"
[[login]]
hosts = ["b.example"]
method = "cookies"
cookies = "samples.tsv"
"""
    found = load_topic(write(folder, SMALLEST + text)).login
    assert [login.method for login in found] == ["bearer", "cookies"]
    assert found[1].cookies == folder / "samples.tsv"


def test_the_documented_defaults_of_a_login_are_its_fields():
    default = Login(("a.example",))
    for key in TOPIC_KEYS["login"][1:]:
        value = tomllib.loads(f"value = {key.default}")["value"] if key.default else None
        assert getattr(default, key.name) == value


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"env:PAPERS"', '"hunter2"', "login.password: must name where the secret is"),
        ("password =", "pasword =", "login.pasword: unknown key; did you mean password"),
        ('password = "env:PAPERS"', "", 'login.password: required for method = "form"'),
        ('username = "me"', 'token = "env:T"\nusername = "me"', "login.token: has no meaning"),
        ('["papers.example", ', '["https://papers.example", ', "login.hosts: .*not a host name"),
        ('["papers.example", ', "[", 'login.url: its host "papers.example" is not in hosts'),
        ('url = "https:', 'url = "http:', "login.url: .*unencrypted http"),
        ("username", "allow_http = true\nusername", "login.allow_http: .*url is https"),
        ('url = "https://papers.example/login"', 'url = "login"', "login.url: .*not an http"),
        ('username = "me"', 'username = "me"\nfields = { a = 1 }', "login.fields: must be names"),
        ('username = "me"', 'username = "me"\nmax_tries = 0', "login.max_tries: must be 1"),
        ("[login]", '[[login]]\nhosts = ["papers.example"]\n[[login]]', "has another login"),
        ('hosts = ["papers.example", "ID.papers.example:8443"]', "", "login.hosts: required"),
    ],
)
def test_a_wrong_login_is_an_error_that_shows_no_secret(folder, old, new, message):
    text = SMALLEST + LOGIN.replace(old, new, 1)
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_topic(write(folder, text))
    assert "hunter2" not in str(raised.value)


def test_a_topic_as_json_names_only_hosts_and_method_of_a_login(folder):
    described = topic_to_json(load_topic(write(folder, SMALLEST + LOGIN)))
    hosts = ["papers.example", "id.papers.example:8443"]
    assert described["login"] == [{"hosts": hosts, "method": "form"}]


def test_an_absolute_path_stays_as_it_is(folder):
    text = SMALLEST.replace("samples.tsv", str(folder / "samples.tsv"))
    assert load_topic(write(folder, text)).training.directory == (folder / "samples.tsv",)


def test_every_key_of_every_section_arrives(folder):
    text = SMALLEST.replace(
        POLITENESS,
        """
        [scope]
        allow_hosts = ["Python.org", "münchen.example"]
        deny_hosts = ["127.0.0.1"]
        allow_paths = ["^/3/"]
        deny_paths = ["[?&]q="]
        languages = ["EN"]
        content_types = ["Text/HTML"]
        documents = ["epub", "text"]
        max_depth = 0
        max_pages_per_host = 7
        max_page_bytes = 1000
        max_links_per_page = 20
        near_duplicates = false
        mirrors = false
        [politeness]
        user_agent = "Bot/1 me@bot.example"
        delay_s = 0
        delays = { "Slow.example" = 10, "münchen.example" = 0.5 }
        fetch_time_factor = 2.5
        per_address = false
        robots = false
        noindex = "keep"
        nofollow = false
        concurrency = 2
        timeout_s = 1.5
        max_tries = 1
        suspend_s = 60
        patience = 0
        [budget]
        pages = 10
        hours = 0.5
        bytes = 99
        min_harvest = 0.02
        min_harvest_pages = 50
        [output]
        folder = "out"
        warc = false
        parquet = false
        """,
    )
    topic = load_topic(write(folder, text))
    assert topic.scope == Scope(
        allow_hosts=("python.org", "xn--mnchen-3ya.example"),
        deny_hosts=("127.0.0.1",),
        allow_paths=("^/3/",),
        deny_paths=("[?&]q=",),
        languages=("en",),
        content_types=("text/html",),
        documents=("epub", "text"),
        max_depth=0,
        max_pages_per_host=7,
        max_page_bytes=1000,
        max_links_per_page=20,
        near_duplicates=False,
        mirrors=False,
    )
    assert topic.politeness == Politeness(
        user_agent="Bot/1 me@bot.example",
        delay_s=0.0,
        delays={"slow.example": 10.0, "xn--mnchen-3ya.example": 0.5},
        fetch_time_factor=2.5,
        per_address=False,
        robots=False,
        noindex="keep",
        nofollow=False,
        concurrency=2,
        timeout_s=1.5,
        max_tries=1,
        suspend_s=60.0,
        patience=0.0,
    )
    assert topic.budget == Budget(10, 0.5, 99, min_harvest=0.02, min_harvest_pages=50)
    assert topic.output.folder == folder / "out"
    assert (topic.output.warc, topic.output.parquet) == ("off", False)


def test_sitemaps_of_robots_txt_are_seeds_when_the_topic_says_so(folder):
    assert not load_topic(write(folder, SMALLEST)).seeds.robots_sitemaps
    text = SMALLEST.replace("[seeds]", "[seeds]\nrobots_sitemaps = true")
    assert load_topic(write(folder, text)).seeds.robots_sitemaps


def test_inline_seeds_and_a_seed_file_are_joined_without_repetition(folder):
    (folder / "seeds.txt").write_text(
        "# the start\nhttps://docs.python.org/3/\n\n"
        "http://b.example/#part  # a fragment is no comment\n"
    )
    text = SMALLEST.replace("[training]", 'file = "seeds.txt"\n[training]')
    topic = load_topic(write(folder, text))
    assert topic.seeds.urls == ("https://docs.python.org/3/", "http://b.example/#part")


def test_a_byte_order_mark_is_no_error(folder):
    path = folder / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALLEST.encode())
    assert load_topic(path).name == "databases"


def test_a_missing_topic_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.toml: there is no such topic file"):
        load_topic(tmp_path / "none.toml")


def test_a_folder_is_no_topic_file(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_topic(tmp_path)


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes('name = "bücher"'.encode("latin-1"))
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        load_topic(path)


def test_toml_that_is_nested_too_deeply_is_refused(folder):
    message = complaint(folder, HEAD + f"deep = {'[' * 100_000}\n")
    assert message.startswith("is not valid TOML:")


@pytest.mark.parametrize("digits", [400, 5_000])
def test_an_integer_of_too_many_digits_is_refused(folder, digits):
    message = complaint(folder, SMALLEST + f"delay_s = 1{'0' * digits}\n")
    assert "must be a number" in message or "is not valid TOML: Exceeds the limit" in message


def test_broken_toml_is_named_with_its_line(folder):
    message = complaint(folder, HEAD + "[seeds\n")
    assert message.startswith("is not valid TOML:")
    assert "line 2" in message


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("[scope]\nmax_depht = 3", "scope.max_depht: unknown key; did you mean max_depth?"),
        ("[deep_web]\nquery = 5", "deep_web.query: unknown key; did you mean queries?"),
        ("[scop]", "scop: unknown key; did you mean scope?"),
        ("[scope]\ndelay_s = 3", "scope.delay_s: unknown key; it belongs in [politeness]"),
        (
            'description = "late"',
            "politeness.description: unknown key; it belongs above all sections",
        ),
    ],
    ids=["a key", "a key of search forms", "a section", "another section", "above all sections"],
)
def test_an_unknown_key_is_met_with_the_right_one(folder, addition, message):
    assert complaint(folder, SMALLEST + addition + "\n") == message


def test_all_errors_are_reported_at_once(folder):
    messages = complaints(folder, "[budget]\npages = 0\n")
    keys = [line.split(":")[0] for line in messages]
    assert keys == [
        "name",
        "seeds.urls",
        "training.directory",
        "training.good",
        "politeness.user_agent",
        "budget.pages",
    ]


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("[scope]\nmax_depth = true", "scope.max_depth: must be a whole number, not true"),
        ("[scope]\nmax_depth = 2.0", "scope.max_depth: must be a whole number, not 2.0"),
        ("[scope]\nmax_depth = -1", "scope.max_depth: must be 0 or more, not -1"),
        ("[scope]\nmax_page_bytes = 0", "scope.max_page_bytes: must be 1 or more, not 0"),
        (
            '[scope]\nallow_hosts = "a.org"',
            'scope.allow_hosts: must be a list, also for one entry: allow_hosts = ["a.org"]',
        ),
        (
            "[scope]\nallow_hosts = [3]",
            "scope.allow_hosts: entry 1 must be a text in quotes, not 3",
        ),
        ('[scope]\nallow_hosts = [" "]', "scope.allow_hosts: entry 1 is empty"),
        (
            '[scope]\nlanguages = ["english"]',
            'scope.languages: "english" must be an ISO 639-1 code like en',
        ),
        ('[scope]\ncontent_types = ["html"]', 'scope.content_types: "html" must be like text/html'),
        (
            '[scope]\ndocuments = ["doc"]',
            'scope.documents: there is no format "doc"; known are pdf, docx, odt, pptx, epub, '
            "jats, text, markdown",
        ),
        ("[budget]\nhours = 0", "budget.hours: must be more than 0, not 0"),
        ("[budget]\nhours = nan", "budget.hours: must be more than 0, not nan"),
        ("[budget]\nbytes = -5", "budget.bytes: must be 1 or more, not -5"),
        (
            "[budget]\nmin_harvest = 5",
            "budget.min_harvest: must be a share of at most 1, like 0.9, not 5",
        ),
        ('[budget]\npages = "9"', 'budget.pages: must be a whole number, not "9"'),
        ('[output]\nwarc = "fool"', 'output.warc: "fool" is unknown; did you mean full?'),
        ("[output]\nwarc = 1", "output.warc: must be a text in quotes, not 1"),
        ("[output]\nfolder = 1", "output.folder: must be a text in quotes, not 1"),
        (
            '[output]\nfolder = "samples.tsv"',
            "output.folder: {folder}/samples.tsv: is a file; name a folder",
        ),
        (
            '[cluster]\nstorage = "/mnt/crawls"',
            'cluster.storage: is no URL; for example storage = "file:///mnt/crawls"',
        ),
        ('[cluster]\nunit = "page"', 'cluster.unit: "page" is unknown; there are domain, host'),
        (
            '[deep_web]\nhosts = ["https://db.example/"]',
            'deep_web.hosts: "https://db.example/" is not a host name; write "db.example", '
            "without scheme, port, path or wildcard: it covers its subdomains",
        ),
        ("[deep_web]\nqueries = 0", "deep_web.queries: must be 1 or more, not 0"),
        ("delay_s = -1", "politeness.delay_s: must be 0 or more, not -1"),
        ("delay_s = inf", "politeness.delay_s: must be 0 or more, not inf"),
        ("concurrency = 0", "politeness.concurrency: must be 1 or more, not 0"),
        ("timeout_s = 0", "politeness.timeout_s: must be more than 0, not 0"),
        ("max_tries = 0", "politeness.max_tries: must be 1 or more, not 0"),
        ("robots = 0", "politeness.robots: must be true or false, not 0"),
        (
            "delays = 2",
            'politeness.delays: must be hosts and numbers: delays = { "example.org" = 1.0 }',
        ),
        ('delays = { "a.test" = -1 }', "politeness.delays.a.test: must be 0 or more, not -1"),
        ('delays = { "a.test" = "1" }', 'politeness.delays.a.test: must be a number, not "1"'),
        ('delays = { "a.test" = 1, "A.test" = 2 }', 'politeness.delays: "A.test" occurs twice'),
        (
            'delays = { "http://a.test/" = 1 }',
            'politeness.delays: "http://a.test/" is not a host name; write "a.test", without '
            "scheme, port, path or wildcard: it covers its subdomains",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_key(folder, addition, message):
    message = message.replace("{folder}", str(folder))
    assert complaint(folder, SMALLEST + addition + "\n") == message


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        ("docs.python.org/3/", "is not a URL; it must start with https:// or http://"),
        ("https://", "is not a URL"),
        ("http://exa mple.com/", "is not a URL"),
        ("ftp://a.example/", "is a ftp: address; only http and https can be fetched"),
        ("mailto:me@a.example", "is a mailto: address; only http and https can be fetched"),
    ],
)
def test_an_unusable_seed_is_reported_with_the_reason(folder, seed, why):
    message = complaint(folder, SMALLEST.replace("https://docs.python.org/3/", seed))
    assert message == f'seeds.urls: "{seed}" {why}'


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (
            "http://a.example/\n\ngopher://b.example/\n",
            ':3: "gopher://b.example/" is a gopher: address; only http and https can be fetched',
        ),
        ("# none yet\n", ": holds no URL"),
        (None, ": there is no such file"),
    ],
    ids=["an unusable seed", "no URL", "no file"],
)
def test_a_wrong_file_of_seeds_is_reported(folder, seeds, message):
    if seeds is not None:
        (folder / "seeds.txt").write_text(seeds)
    found = complaint(folder, SMALLEST.replace(SEEDS, '[seeds]\nfile = "seeds.txt"\n'))
    assert found == f"seeds.file: {folder / 'seeds.txt'}{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (HEAD, "", 'name: required; for example name = "mine"'),
        (
            '"databases"',
            '"../etc"',
            'name: "../etc" must be up to 100 letters, digits, ".", "_", "-": it names files',
        ),
        (
            "databases",
            "d" * 101,
            f'name: "{"d" * 101}" must be up to 100 letters, digits, ".", "_", "-": it names files',
        ),
        (
            '["https://docs.python.org/3/"]',
            "[]",
            "seeds.urls: is empty; a crawl needs at least one page to start from",
        ),
        (
            "samples.tsv",
            "none.tsv",
            "training.directory: {folder}/none.tsv: there is no such file or folder",
        ),
        ('["Top/Databases"]', "[]", NO_CATEGORIES),
        ('["Top/Databases"]', '["/"]', NO_CATEGORIES),
    ],
    ids=[
        "no name",
        "a name of no file",
        "long name",
        "no seeds",
        "no directory",
        "no topic",
        "all topics",
    ],
)
def test_what_a_topic_lacks_is_reported(folder, old, new, message):
    message = message.replace("{folder}", str(folder))
    assert complaint(folder, SMALLEST.replace(old, new)) == message


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_estimator_can_be_chosen(folder, name):
    chosen = SMALLEST.replace(TRAINING, f'{TRAINING}estimator = "{name}"\n')
    assert load_topic(write(folder, chosen)).training.estimator == name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", "all-webs"),
        ('link_prior = "without-docweb"\n', "without-docweb"),
        ('link_prior = "priors/own.json"\n', "{folder}/priors/own.json"),
        ('link_prior = "/elsewhere/own.json"\n', "/elsewhere/own.json"),
    ],
)
def test_a_prior_is_named_or_a_file_found_from_the_topic_file(folder, written, meant):
    chosen = SMALLEST.replace(TRAINING, TRAINING + written)
    found = load_topic(write(folder, chosen)).training.link_prior
    assert found == meant.format(folder=folder)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("svm-linear", "did you mean linear-svm?"),
        ("oracle", "there are naive-bayes, logistic-regression, linear-svm"),
    ],
)
def test_an_unknown_estimator_is_met_with_those_there_are(folder, name, hint):
    text = SMALLEST.replace(TRAINING, f'{TRAINING}estimator = "{name}"\n')
    assert complaint(folder, text) == f'training.estimator: "{name}" is unknown; {hint}'


def test_a_category_may_end_in_a_slash(folder):
    path = write(folder, SMALLEST.replace("Top/Databases", "Top/Databases/"))
    assert load_topic(path).training.good == ("Top/Databases",)


@pytest.mark.parametrize("agent", ["Bot/1", "Bot/1 (+http://)", "Bot/1 (me@home)", ""])
def test_a_user_agent_without_contact_is_refused_with_an_example(folder, agent):
    message = complaint(folder, SMALLEST.replace("Bot/1 (+https://bot.example/about)", agent))
    assert message.startswith("politeness.user_agent: holds no contact")
    assert 'user_agent = "' in message


def test_a_user_agent_cannot_smuggle_a_header(folder):
    text = SMALLEST.replace("(+https", "\\r\\nCookie: a=b (+https")
    assert complaint(folder, text).startswith("politeness.user_agent: must be printable ASCII")


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("https://python.org", "python.org"),
        ("https://python.org:8080/3/", "python.org"),
        ("*.python.org", "python.org"),
        (".python.org", "python.org"),
        ("python.org:8080", "python.org"),
        ("python.org/3", "python.org"),
        ("*", "example.org"),
        ("two words", "example.org"),
    ],
)
def test_more_than_a_host_name_is_met_with_the_host_name(folder, pattern, instead):
    message = complaint(folder, SMALLEST + f'[scope]\ndeny_hosts = ["{pattern}"]\n')
    assert message.startswith(
        f'scope.deny_hosts: "{pattern}" is not a host name; write "{instead}"'
    )


def test_a_bad_regular_expression_is_shown_with_its_fault(folder):
    message = complaint(folder, SMALLEST + '[scope]\nallow_paths = ["/(a"]\n')
    assert message.startswith("scope.allow_paths: '/(a' is not a regular expression: missing )")


def test_a_parameter_is_dropped_or_kept_and_not_both(folder):
    both = '[scope]\ndrop_parameters = ["sort", "view_*"]\nkeep_parameters = ["sort", "view_id"]\n'
    message = complaint(folder, SMALLEST + both)
    assert message == 'scope.keep_parameters: "sort" is in drop_parameters, too'
    fine = both.replace('"sort", ', "")
    (folder / "fine.toml").write_text(SMALLEST + fine, encoding="utf-8")
    scope = load_topic(folder / "fine.toml").scope
    assert (scope.drop_parameters, scope.keep_parameters) == (("view_*",), ("view_id",))


def test_a_section_that_is_no_section_is_an_error(folder):
    message = complaint(folder, "scope = 3\n" + SMALLEST)
    assert message == "scope: must be a section: a line [scope] with its keys below"


def test_pages_per_address_needs_per_address(folder):
    scope = "[scope]\nmax_pages_per_address = 8\n"
    assert load_topic(write(folder, SMALLEST + scope)).scope.max_pages_per_address == 8
    message = complaint(folder, SMALLEST + "per_address = false\n" + scope)
    assert message == "scope.max_pages_per_address: needs politeness.per_address = true"


toml_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    section=st.sampled_from(sorted(SECTIONS)),
    key=st.sampled_from(sorted({key for keys in SECTIONS.values() for key in keys})),
    value=toml_values,
)
def test_no_value_of_any_key_breaks_the_reader(tmp_path_factory, section, key, value):
    folder = tmp_path_factory.getbasetemp()
    (folder / "samples.tsv").write_text("Top/Databases\thttp://a.example/\tA\tB\n")
    whole = tomllib.loads(SMALLEST)
    table = whole.setdefault(section, {}) if section else whole
    table[key] = value
    path = write(folder, as_toml(whole))
    try:
        topic = load_topic(path)
    except ConfigurationError as error:
        messages = str(error).splitlines()
    else:
        messages = []
        json.dumps(topic_to_json(topic), allow_nan=False)
    assert all(line.startswith(f"{path}:") for line in messages)


def as_toml(tables: dict[str, object]) -> str:
    """TOML for plain tables one level deep."""

    def inline(value: object) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(inline, value)) + "]"
        if isinstance(value, float):
            return repr(value)
        # json leaves the delete character bare, TOML does not allow that
        return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")

    head = [f"{k} = {inline(v)}" for k, v in tables.items() if not isinstance(v, dict)]
    for name, table in tables.items():
        if isinstance(table, dict):
            head += [f"[{name}]", *(f"{k} = {inline(v)}" for k, v in table.items())]
    return "\n".join(head) + "\n"


def test_a_description_of_a_topic_holds_every_section_as_json(folder):
    topic = load_topic(write(folder, SMALLEST))
    topic = replace(topic, budget=Budget(pages=5))
    loaded = json.loads(json.dumps(topic_to_json(topic)))
    assert set(loaded) - {"path"} == {*SECTIONS[""], *(name for name in SECTIONS if name)}
    assert loaded["budget"] == asdict(Budget(pages=5))
    assert loaded["training"]["directory"] == [str(folder / "samples.tsv")]


def test_a_description_names_paths_that_are_right_from_any_directory(folder, monkeypatch):
    written = write(folder, SMALLEST)
    monkeypatch.chdir(folder)
    loaded = json.loads(json.dumps(topic_to_json(load_topic(Path(written.name)))))
    assert loaded["path"] == str(written)
    assert Path(loaded["training"]["labels"]).is_relative_to(folder)
    assert Path(loaded["output"]["folder"]).is_absolute()


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_the_example_shows_every_key_in_its_section(section):
    shown: dict[str, set[str]] = {"": set()}
    current = ""
    for line in EXAMPLE.read_text().splitlines():
        if header := re.match(r"\[(\w+)\]", line):
            current = header[1]
            shown[current] = set()
        elif key := re.match(r"(?:# )?(\w+) = ", line):
            shown[current].add(key[1])
    assert shown[section] == set(SECTIONS[section])


def test_the_example_loads_with_its_commented_keys_switched_on(tmp_path):
    text = re.sub(r"^# (\w+ = )", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^recall = .*\n", "", text, flags=re.MULTILINE)  # or else precision
    text = re.sub(r"^(token|cookies) = .*\n", "", text, flags=re.MULTILINE)  # of other methods
    directory = EXAMPLE.parent / "example-directory.tsv"
    (tmp_path / directory.name).write_text(directory.read_text())
    (tmp_path / "seeds.txt").write_text("https://www.sqlite.org/\n")
    for name in ("ca.pem", "worker.pem", "worker.key"):
        (tmp_path / name).touch()
    (tmp_path / "all.toml").write_text(text)
    topic = load_topic(tmp_path / "all.toml")
    assert topic.scope.max_pages_per_host == 500


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("precision = 0.9\nrecall = 0.9", "training.recall: .*not both"),
        ("precision = 90", "training.precision: must be a share of at most 1, like 0.9, not 90"),
        ("recall = 0", "training.recall: must be more than 0"),
        ('recall = "high"', "training.recall"),
    ],
)
def test_an_impossible_threshold_target_is_an_error(tmp_path, lines, message):
    text = EXAMPLE.read_text().replace('estimator = "naive-bayes"', f"{lines}\n#")
    directory = EXAMPLE.parent / "example-directory.tsv"
    (tmp_path / directory.name).write_text(directory.read_text())
    (tmp_path / "wish.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_topic(tmp_path / "wish.toml")


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_the_reference_explains_every_key_in_its_section(section):
    heading = f"## [{section}]" if section else "## Top level"
    page = with_generated(REFERENCE.read_text(encoding="utf-8"), REFERENCE)
    body = page.split(heading + "\n")[1].split("\n## ")[0]
    names = re.findall(r"^- `(\w+)` \(.+?\): \S", body, flags=re.MULTILINE)
    assert names == list(SECTIONS[section])


@pytest.mark.parametrize(
    "part", [Training, Scope, Politeness, Budget, Revisit, Output, Cluster, DeepWeb]
)
def test_the_keys_of_a_section_are_the_fields_that_it_fills(part):
    name = "deep_web" if part is DeepWeb else part.__name__.lower()
    assert SECTIONS[name] == tuple(field.name for field in fields(part))


@pytest.mark.parametrize("section", sorted(set(SECTIONS) - {"", "login", "seeds"}))
def test_the_documented_defaults_are_those_of_a_minimal_topic(folder, section):
    part = getattr(load_topic(write(folder, SMALLEST)), section)
    for key in TOPIC_KEYS[section]:
        value = getattr(part, key.name)
        if key.default in (NO_LIMIT, "a seventh of the pages") or not key.default:
            assert value is None
        elif re.match(r'["\[{\d]|true$|false$', key.default):
            (default,) = tomllib.loads(f"value = {key.default}").values()
            assert value == (tuple(default) if isinstance(default, list) else default)


@pytest.mark.parametrize(
    ("host", "delay_s"),
    [
        ("slow.example", 10.0),
        ("slow.example:8080", 10.0),
        ("www.slow.example", 10.0),
        ("docs.www.slow.example", 10.0),
        ("mine.slow.example", 0.1),
        ("notslow.example", 2.0),
        ("example", 2.0),
        ("[::1]:80", 2.0),
    ],
)
def test_a_host_has_the_delay_of_the_nearest_name_that_covers_it(host, delay_s):
    delays = {"slow.example": 10.0, "mine.slow.example": 0.1}
    assert Politeness("Bot/1 me@bot.example", delay_s=2.0, delays=delays).delay_of(host) == delay_s


def test_every_topic_file_that_ships_loads():
    topics = [load_topic(path) for path in sorted(EXAMPLE.parent.glob("*.toml"))]
    assert len({topic.name for topic in topics}) == len(topics)


def test_over_a_recorded_web_no_server_is_spared_and_no_host_waited_for(folder):
    topic = load_topic(write(folder, SMALLEST))
    ran = adapt_to_recorded_web(topic)
    spared = (ran.politeness.fetch_time_factor, ran.politeness.suspend_s)
    assert (*spared, ran.politeness.per_address) == (0.0, 0.0, False)
    kept = {"fetch_time_factor": 10.0, "suspend_s": 3600.0, "per_address": True}
    ran = replace(ran, scope=replace(ran.scope, private_addresses=False))
    assert replace(ran, politeness=replace(ran.politeness, **kept)) == topic


def test_a_recorded_web_is_on_this_machine_whatever_its_hosts_are_called(folder):
    topic = load_topic(write(folder, SMALLEST))
    assert not topic.scope.private_addresses
    assert adapt_to_recorded_web(topic).scope.private_addresses


def test_a_format_of_documents_without_its_library_is_an_error(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert complaint(folder, SMALLEST + '[scope]\ndocuments = ["pdf", "docx"]\n') == (
        'scope.documents: "pdf" needs pypdfium2, which is not installed: '
        "pip install 'focused-crawler[documents]'"
    )


def test_a_topic_that_names_no_formats_needs_no_library(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert load_topic(write(folder, SMALLEST)).scope.documents[0] == "pdf"
