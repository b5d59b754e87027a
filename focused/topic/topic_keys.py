"""The documentation of every key of a topic file, and their JSON Schema.

The dataclasses of :mod:`focused.topic` declare the keys, :mod:`focused.topic.value_kinds` checks
them.

The reference page shows this table, and editors show it by way of its JSON Schema.
:mod:`focused.topic.topic_file` reads the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

import msgspec

from focused.topic import (
    Budget,
    Cluster,
    DeepWeb,
    Output,
    Politeness,
    Revisit,
    Scope,
    Seeds,
    Training,
)
from focused.topic.login import Login
from focused.topic.value_kinds import ValueKind, declared_sections, kinds_of, text

REQUIRED = "required"
NO_LIMIT = "no limit"

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "": {
        "name": (
            "Names the model, the crawl's folder and the reports: up to 100 letters, digits, `.`, "
            "`_`, `-`."
        ),
        "description": "For readers; the crawl does not use it.",
    },
    "seeds": {
        "urls": (
            "Pages, sitemaps, feeds or OAI-PMH repositories, by http or https. See "
            "docs/how-to/feeds.md."
        ),
        "file": (
            "A text file with one URL per line. `#` at the start of a line or after a blank starts "
            "a comment."
        ),
        "robots_sitemaps": (
            "Sitemaps that the robots.txt of a seed's host names are seeds, too, at most twenty "
            "per host. For topics that fill whole hosts: all pages of a large site enter the "
            "frontier."
        ),
    },
    "training": {
        "directory": (
            "Samples under categories, in any mix of formats. See docs/reference/directories.md."
        ),
        "good": (
            "The topic: these categories and all below them. `Top/Computers` includes "
            "`Top/Computers/Databases` but not `Top/Computers2`."
        ),
        "model": (
            "File of the model. The crawl trains it if it is missing or was made from other "
            "samples, categories or another estimator."
        ),
        "estimator": (
            "`naive-bayes`, `logistic-regression` or `linear-svm`. See "
            "docs/explanation/classifier.md#other-estimators."
        ),
        "link_prior": (
            "Initial weights of the link scorer: `all-webs`, `without-WEB` for a crawl that the "
            "labels of that recorded web score, or the path of a JSON file of the same format, "
            "ending in `.json`."
        ),
        "labels": "File of the labels from `focused label`. It need not exist.",
        "focus": (
            "`soft` follows the links of every page, `hard` only those of pages whose most likely "
            "category is good. See docs/reference/directories.md#hard-and-soft-focus."
        ),
        "max_samples": (
            "Maximum number of good samples, and of other samples. Larger directories are sampled "
            "at random."
        ),
        "precision": (
            "The classifier's threshold is the lowest that reaches this precision on held-out "
            "samples; if none does, that with the highest precision, and the model card says so."
        ),
        "recall": (
            "The threshold is the highest that reaches this recall. Set at most one of `precision` "
            "and `recall`; without either the threshold maximises F1."
        ),
        "background": (
            "If the directory has fewer than 300 other samples, add the shipped general "
            "background. Good samples alone then suffice."
        ),
        "keywords": (
            "Keywords of the topic, from `focused topic new`: a prior of the classifier while "
            "labels are few. See docs/how-to/teaching.md#focused-topic-new."
        ),
        "embedding": (
            "Score links and pages by the meaning of their words, too (English). See "
            "docs/explanation/apprentice.md#meaning and "
            "docs/explanation/classifier.md#parts-of-the-score."
        ),
    },
    "scope": {
        "allow_hosts": (
            "Fetch only these hosts and their subdomains: `python.org` covers `docs.python.org`. "
            "Schemes, ports, paths and wildcards are errors."
        ),
        "deny_hosts": (
            "Never fetch these hosts and their subdomains, even if `allow_hosts` covers them."
        ),
        "allow_paths": (
            "At least one must match somewhere in path and query (`/3/search.html?q=x`). Anchor "
            "with `^`."
        ),
        "deny_paths": "None may match, even if `allow_paths` matches.",
        "languages": "Keep pages in these languages and pages of unknown language.",
        "content_types": "Media types that count as pages.",
        "documents": (
            "Documents that count as pages, whatever their media type. `pdf` and `markdown` need "
            "the extra `documents`: a topic that names one fails at start without it; by default "
            "PDFs fail as `missing-library`. See docs/how-to/documents.md."
        ),
        "max_depth": "Maximum number of links from the nearest seed; 0 fetches only the seeds.",
        "max_pages_per_host": "Maximum number of pages of one host.",
        "max_pages_per_address": (
            "Maximum number of pages from one IP address, over all its hosts. No effect on a "
            "recorded web."
        ),
        "max_page_bytes": "Larger pages are cut off and count as failed.",
        "max_links_per_page": (
            "Maximum number of different link targets taken from one page, in document order. "
            "Sitemaps and feeds have a limit of 50,000, simulated crawls always 5,000."
        ),
        "private_addresses": (
            "Allow loopback, link-local and private networks, for a crawl of your own intranet. "
            "Else the crawl refuses them as link, redirect target and resolved name. See "
            "docs/reference/crawl-folder.md#kinds-of-failure."
        ),
        "near_duplicates": (
            "A page that differs from an earlier one in a few words is a duplicate: no harvest, "
            "and its links are not followed. If false, duplicates have the same text. See "
            "docs/explanation/duplicates.md."
        ),
        "mirrors": (
            "Fetch sites and folders that hold the same pages once. See "
            "docs/explanation/duplicates.md#mirrors."
        ),
        "traps": (
            "Refuse links into crawl traps, such as calendars, endless paths, filters and session "
            "ids. See docs/explanation/traps.md."
        ),
        "spam": (
            'What to do with pages that are probably spam. `"avoid"`: they neither guide the crawl '
            'nor count as harvest. `"report"`: store the probability only. `"ignore"`: do not '
            "compute it. See docs/explanation/web-spam.md."
        ),
        "javascript": (
            'What to do with pages that show nothing without JavaScript. `"report"`: count them '
            'and their hosts. `"render"`: let a browser run their scripts, where worth its cost; '
            'needs the extra `javascript` and Chromium. `"ignore"`: do not look for them. See '
            "docs/how-to/javascript.md."
        ),
        "javascript_hosts": (
            "Hosts, with their subdomains, that scripts of rendered pages may request besides "
            "their own site and the public script libraries."
        ),
        "drop_parameters": (
            "Query parameters that do not change the page, such as sort orders. The crawl "
            "removes them from links and redirects, not from seeds and a spider's own requests. "
            "`view_*` matches all names that begin with `view_`, case-sensitively. Those that "
            "are always removed: docs/explanation/hostile-input.md#urls."
        ),
        "keep_parameters": (
            "Query parameters that always change the page, which the crawl never learns to "
            "ignore, nor drops for a prefix in `drop_parameters`. A name in both lists is an "
            "error. See docs/explanation/traps.md#what-is-learned."
        ),
    },
    "politeness": {
        "user_agent": (
            "Sent with every request and matched against robots.txt. It must contain a web address "
            "or an e-mail address, so that webmasters can reach you."
        ),
        "delay_s": ("Seconds between two requests to one host."),
        "delays": (
            "Delays of single hosts and their subdomains instead of `delay_s`: `delays = { "
            '"slow.example" = 10.0 }`. The most specific name applies; ports are ignored. For '
            "your own hosts they may be shorter."
        ),
        "fetch_time_factor": (
            "The delay of a host is at least this many times the duration of its last response, at "
            "most an hour ([Mercator](https://doi.org/10.1023/A:1019213109274)). `0` switches it "
            "off."
        ),
        "per_address": (
            "Hosts at one IP address share one connection and one delay. Set it to false if your "
            "hosts are behind large content delivery networks."
        ),
        "robots": "Obey robots.txt. Set it to false only for your own hosts.",
        "noindex": (
            "What to do with pages that ask all robots, or the product name of your `user_agent`, "
            "not to index them: by robots meta tag, X-Robots-Tag, or `unavailable_after` in the "
            'past. `"leave-out"`: follow their links, but keep them out of harvest, WARC and a '
            'spider\'s items; `pages.parquet` lists them as `noindex`, without a title. `"keep"`: '
            "treat them like other pages. Training samples are always kept. See "
            "docs/how-to/library.md#items."
        ),
        "nofollow": (
            "Do not follow links with rel=nofollow, ugc or sponsored, or on pages that say "
            "nofollow; `links.parquet` lists them. A plain link to the same target on another page "
            "is followed."
        ),
        "concurrency": "Maximum number of requests in flight, over all hosts.",
        "timeout_s": "Timeout of a request in seconds.",
        "max_tries": "Maximum number of requests for one page.",
        "suspend_s": (
            "A host that only fails (eight failures in a row, or `max_tries` to fetch its "
            "robots.txt for the first time) is suspended for this many seconds, twice as long "
            "each time, up to a day; its links stay queued. After the third suspension, or at "
            "once with `0`, the crawl gives the host up."
        ),
        "patience": (
            "How long, in delays, a link waits for a clearly better one whose host is busy or not "
            "due yet. More patience: fewer pages per second, more of them on topic. `0` does not "
            "wait."
        ),
    },
    "budget": {
        "pages": "Pages fetched.",
        "hours": "Running time.",
        "bytes": "Bytes downloaded.",
        "min_harvest": (
            "Least share of pages on topic among the last `min_harvest_pages` pages. Below it "
            "the crawl ends: the topic is exhausted, or was not found."
        ),
        "min_harvest_pages": "Number of pages over which `min_harvest` is measured.",
    },
    "revisit": {
        "continuous": (
            "The crawl visits its pages again after its first harvest, which `[budget]` limits, "
            "and fetches new ones, until `hours` have passed or you stop it."
        ),
        "policy": (
            "What decides when a page is visited again. See docs/reference/revisit-policies.md."
        ),
        "pages_per_day": (
            "Downloads a day after the first harvest, revisits and new pages together."
        ),
        "bytes_per_day": "Bytes downloaded a day after the first harvest.",
        "hours": "Running time after which a continuous crawl ends.",
        "share": (
            "Fixed share of the downloads that are revisits. By default revisits and new links "
            "compete by the relevant new content expected of a download."
        ),
        "min_interval_hours": "A page is not visited again sooner than this.",
        "max_interval_days": (
            "Each page is visited at least this often. By default a page that is worth as much as "
            "one of relevance 1 waits three mean intervals at most, one of half the worth six."
        ),
        "min_pace": (
            "Each page is visited at least at this share of the pace at which all would be visited "
            "alike. More is fairer to quiet sites and makes the whole collection less fresh. See "
            "docs/explanation/revisiting.md#one-price-for-all-visits."
        ),
        "by_relevance": "Weight pages by their relevance.",
        "host_weights": (
            'Factors for hosts and their subdomains: `host_weights = { "news.example" = 3.0 }`. A '
            "page of weight 0 is visited only after `max_interval_days`, and never without it."
        ),
        "path_weights": (
            'Factors for pages whose path and query match: `path_weights = { "^/archive/" = 0.1 '
            "}`. The first match applies, together with the host's factor."
        ),
    },
    "output": {
        "folder": "The crawl's folder; created if missing. Relative to the topic file.",
        "warc": (
            'What the WARC holds. `"responses"` or `true`: all responses; `"full"`: requests, too; '
            '`"pages"`: the responses of fetched pages; `"off"` or `false`: no WARC. See '
            "docs/reference/crawl-folder.md#the-warc."
        ),
        "max_warc_bytes": "Start another WARC file when one reaches this size.",
        "parquet": (
            "Write `pages.parquet` and `links.parquet`. Without them the crawl prints no report at "
            "its end."
        ),
    },
    "login": {
        "hosts": (
            "The hosts of the login, with a port if it is not the scheme's own "
            '(`"intranet.example:8080"`). No other host gets a credential or a cookie, subdomains '
            "included."
        ),
        "method": (
            "`form` fills in the login form at `url`; `basic` sends user name and password with "
            "every request (RFC 7617); `bearer` sends `token` (RFC 6750); `cookies` sends the "
            "cookies of a browser session."
        ),
        "url": (
            "`form`: the page with the login form, on one of `hosts`. `cookies`: the page that "
            "requests of an ended session are redirected to."
        ),
        "username": "`form`, `basic`: the user name, or where to find it. See "
        "docs/how-to/login.md#secrets.",
        "password": (
            "`form`, `basic`: where to find the password. A password in the file is an error."
        ),
        "token": "`bearer`: where to find the token.",
        "cookies": (
            "`cookies`: a file in the Netscape format (`cookies.txt`). Cookies of other hosts in "
            "it are ignored."
        ),
        "form": ("`form`: CSS selector of the form; by default the first with a password field."),
        "username_field": (
            "`form`: name of the field for the user name; by default the last text or e-mail "
            "field before the password."
        ),
        "password_field": (
            "`form`: name of the field for the password; by default the first such field."
        ),
        "fields": (
            '`form`: values of further fields: `fields = { remember = "1" }`. Hidden fields keep '
            "theirs without it."
        ),
        "expired_text": (
            "Text that only pages of an ended session contain, such as `Please sign in`. Status "
            "401 and 403, and redirects to `url`, are noticed without it."
        ),
        "max_tries": (
            "`form`: failed logins in a row, such as timeouts, after which the crawl waits for "
            "`politeness.suspend_s`. A name or password that the site rejects is not tried again."
        ),
        "allow_http": ("Send credentials over unencrypted http, too. An error if `url` is https."),
    },
    "deep_web": {
        "hosts": (
            "Hosts, with their subdomains, whose search forms the crawl may use: only forms that "
            "send one text by GET. Without hosts none is used."
        ),
        "queries": "Maximum number of queries of one form.",
        "result_pages": "Maximum number of result pages fetched for a query.",
        "stop_after": (
            "The crawl leaves a form after this many queries in a row without a new relevant page."
        ),
    },
    "cluster": {
        "storage": (
            "The storage that all machines of a crawl share, for state and results: a folder such "
            "as `file:///mnt/crawls`, or `s3://BUCKET/FOLDER` and others of fsspec."
        ),
        "unit": (
            'What stays in one process: all hosts of a registered domain (`"domain"`), or each '
            'host by itself (`"host"`). It cannot be changed later.'
        ),
    },
}
"""Markdown by section and key; ``""`` is the head. Paths under ``docs/`` become links."""

_SECTIONS: Mapping[str, type[Any]] = {
    "seeds": Seeds,
    "training": Training,
    "scope": Scope,
    "politeness": Politeness,
    "budget": Budget,
    "revisit": Revisit,
    "output": Output,
    "login": Login,
    "deep_web": DeepWeb,
    "cluster": Cluster,
}
_DEFAULTS: Mapping[str, str] = {
    "seeds.urls": "",
    "training.model": "`NAME.joblib` beside the topic file",
    "training.labels": "`NAME.labels.jsonl` beside the model",
    "training.precision": "",
    "training.recall": "",
    "revisit.pages_per_day": "a seventh of the pages",
    "revisit.share": "",
    "revisit.max_interval_days": "three mean intervals",
    "revisit.min_pace": "a third",
    "output.folder": "`crawls/NAME` in the current directory",
    "login.cookies": "",
}
"""Defaults in words, where they depend on other keys or are none."""


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A key of a topic file.

    ``default`` is a TOML value, or words where there is none; then ``value`` is None.
    """

    name: str
    kind: ValueKind
    meaning: str
    default: str
    value: object = None


def _keys_of(section: str, meanings: Mapping[str, str]) -> Iterator[TopicKey]:
    declared = {each.name: each for each in fields(_SECTIONS[section])}
    kinds = dict(kinds_of(_SECTIONS[section]))
    for name, meaning in meanings.items():
        if name not in declared:  # the file of seeds, whose URLs join those of the list
            yield TopicKey(name, text("path"), meaning, "")
            continue
        value = _default_of(declared[name])
        words = _DEFAULTS.get(f"{section}.{name}")
        if words is None:
            words = NO_LIMIT if value is None else REQUIRED if value is MISSING else _as_toml(value)
        yield TopicKey(name, kinds[name], meaning, words, value=None if value is MISSING else value)


def _default_of(declared: Field[Any]) -> Any:
    factory = declared.default_factory
    return declared.default if factory is MISSING else factory()


def _as_toml(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        # What sections hold is written in JSON as in TOML.
        return json.dumps(value)
    return f"{value:_}"


_HEAD = _MEANINGS[""]
TOPIC_KEYS: Mapping[str, tuple[TopicKey, ...]] = {
    "": (
        TopicKey("name", text(), _HEAD["name"], REQUIRED),
        TopicKey("description", text(), _HEAD["description"], '""', ""),
    ),
    **{name: tuple(_keys_of(name, _MEANINGS[name])) for name in _SECTIONS},
}
"""Keys by section; ``""`` is the head of the file."""


DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that editors' TOML extensions understand."""

_Schema = dict[str, Any]

_REQUIRED_SECTIONS = ("seeds", "training", "politeness")


def topic_schema() -> _Schema:
    """Return the JSON Schema of topic files, with the sections of installed features."""
    head = _section_schema("", TOPIC_KEYS[""])
    sections = {name: _section_schema(name, keys) for name, keys in TOPIC_KEYS.items() if name}
    login = sections["login"]
    sections["login"] = {"anyOf": [login, {"type": "array", "items": login}]}
    for name, kind in declared_sections().items():
        sections[name] = _feature_schema(kind)
    return {
        "$schema": DIALECT,
        "title": "Topic file of Focused",
        **head,
        "properties": {**head["properties"], **sections},
        "required": [*head["required"], *_REQUIRED_SECTIONS],
    }


def _section_schema(name: str, keys: tuple[TopicKey, ...]) -> _Schema:
    required = {"required": [key.name for key in keys if key.default == REQUIRED]}
    is_optional = name not in ("", *_REQUIRED_SECTIONS)
    return {
        "type": "object",
        "properties": {key.name: _key_schema(f"{name}.{key.name}", key) for key in keys},
        # Other sections may be empty, as in a file whose keys are comments.
        **({"if": {"minProperties": 1}, "then": required} if is_optional else required),
        "additionalProperties": False,
    }


def _key_schema(name: str, key: TopicKey) -> _Schema:
    found: _Schema = {**key.kind.schema, "description": key.meaning}
    if name == "output.warc":
        found["enum"] = [*found["enum"], True, False]
    if key.value is not None:
        found["default"] = list(key.value) if isinstance(key.value, tuple) else key.value
    return found


def _feature_schema(kind: type[Any]) -> _Schema:
    """Return the schema of a feature's dataclass, without references to definitions."""
    assert is_dataclass(kind)
    (_,), definitions = msgspec.json.schema_components([kind])
    return {**definitions[kind.__name__], "additionalProperties": False}
