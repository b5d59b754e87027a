"""Every key of a topic file with type, default and meaning.

:mod:`focused.topic.topic_file` reads the keys; the reference page shows this table.
"""

from __future__ import annotations

from dataclasses import dataclass

REQUIRED = "required"
NO_LIMIT = "no limit"


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A key of a topic file.

    ``default`` is a TOML value, or words where the default depends on other
    keys. ``meaning`` is Markdown; paths under ``docs/`` become links.
    """

    name: str
    type: str
    default: str
    meaning: str


FLAG, TEXT, PATH = "true or false", "text", "path"
COUNT, COUNT_OR_ZERO = "whole number, from 1", "whole number, from 0"
NUMBER, POSITIVE = "number, from 0", "number above 0"
TEXTS, HOSTS, PATTERNS = "list of texts", "list of host names", "list of regular expressions"

HEAD_KEYS = (
    TopicKey(
        "name",
        TEXT,
        REQUIRED,
        "Names the model, the crawl's folder and the reports: letters, digits, `.`, `_`, `-`.",
    ),
    TopicKey("description", TEXT, '""', "For readers; the crawl does not use it."),
)

SEED_KEYS = (
    TopicKey(
        "urls",
        "list of URLs",
        "",
        "http or https URLs of pages, sitemaps, feeds or OAI-PMH repositories. See "
        "docs/how-to/feeds.md.",
    ),
    TopicKey(
        "file",
        PATH,
        "",
        "A text file with one URL per line. `#` at the start of a line or after a blank starts a "
        "comment.",
    ),
    TopicKey(
        "robots_sitemaps",
        FLAG,
        "false",
        "If true, the sitemaps that the robots.txt of a seed's host names are seeds, at most "
        "twenty per host. Use it for topics that fill whole hosts: the sitemaps of a large site "
        "put all its pages into the frontier.",
    ),
)

TRAINING_KEYS = (
    TopicKey(
        "directory",
        "list of paths",
        REQUIRED,
        "Samples under categories: TSV, JSON Lines, folders of saved pages, DMOZ dumps, Debian's "
        "package index, in any mix. See docs/reference/directories.md.",
    ),
    TopicKey(
        "good",
        "list of categories",
        REQUIRED,
        "The topic: these categories and all below them. `Top/Computers` includes "
        "`Top/Computers/Databases` but not `Top/Computers2`.",
    ),
    TopicKey(
        "model",
        PATH,
        "`NAME.joblib` beside the topic file",
        "File of the trained model. The crawl trains it if it is missing or was made from other "
        "samples, categories or another estimator.",
    ),
    TopicKey(
        "estimator",
        TEXT,
        '"naive-bayes"',
        "Estimator of the topic classifier: `naive-bayes`, `logistic-regression` or `linear-svm`. "
        "See docs/explanation/classifier.md#other-estimators.",
    ),
    TopicKey(
        "link_prior",
        TEXT,
        '"all-webs"',
        "Initial weights of the link scorer: the name of a shipped prior (`all-webs`, or "
        "`without-WEB` for a crawl that the labels of that recorded web score), or the path of a "
        "JSON file of the same format, ending in `.json`.",
    ),
    TopicKey(
        "labels",
        PATH,
        "`NAME.labels.jsonl` beside the model",
        "File of the labels that `focused label` collects. It need not exist.",
    ),
    TopicKey(
        "focus",
        TEXT,
        '"soft"',
        "`soft` follows the links of every page, ordered by score. `hard` follows only links of "
        "pages whose most likely category is good. See "
        "docs/reference/directories.md#hard-and-soft-focus.",
    ),
    TopicKey(
        "max_samples",
        "whole number, from 10",
        "10_000",
        "Maximum number of good samples, and of other samples. Larger directories are sampled at "
        "random.",
    ),
    TopicKey(
        "precision",
        "share",
        "",
        "The classifier's threshold is the lowest that reaches this precision on held-out samples, "
        "for example `0.9`. If none does, training takes the threshold with the highest precision, "
        "and the model card says so.",
    ),
    TopicKey(
        "recall",
        "share",
        "",
        "The classifier's threshold is the highest that reaches this recall. Set at most one of "
        "`precision` and `recall`; without either the threshold maximises F1.",
    ),
    TopicKey(
        "background",
        FLAG,
        "true",
        "If the directory has fewer than 300 other samples, training adds the general background "
        "that is shipped with the package. Good samples alone then suffice.",
    ),
    TopicKey(
        "keywords",
        TEXTS,
        "[]",
        "Keywords of the topic. `focused topic new` writes them; the classifier uses them as a "
        "prior while labels are few. See docs/how-to/teaching.md#focused-topic-new.",
    ),
    TopicKey(
        "embedding",
        FLAG,
        "true",
        "Score links and pages by the meaning of their words, too, with the shipped word "
        "embedding (English). See docs/explanation/apprentice.md#meaning and "
        "docs/explanation/classifier.md#parts-of-the-score.",
    ),
)

SCOPE_KEYS = (
    TopicKey(
        "allow_hosts",
        HOSTS,
        "[]",
        "Fetch only these hosts and their subdomains. `python.org` covers `docs.python.org`. "
        "Schemes, ports, paths and wildcards are errors.",
    ),
    TopicKey(
        "deny_hosts",
        HOSTS,
        "[]",
        "Never fetch these hosts and their subdomains, even if `allow_hosts` covers them.",
    ),
    TopicKey(
        "allow_paths",
        PATTERNS,
        "[]",
        "At least one must match somewhere in path and query (`/3/search.html?q=x`). Anchor with "
        "`^`.",
    ),
    TopicKey(
        "deny_paths",
        PATTERNS,
        "[]",
        "None may match in path and query, even if `allow_paths` matches.",
    ),
    TopicKey(
        "languages",
        "list of ISO 639-1 codes",
        "[]",
        "Keep pages in these languages and pages of unknown language.",
    ),
    TopicKey(
        "content_types",
        "list of media types",
        '["text/html", "application/xhtml+xml"]',
        "Media types that count as pages.",
    ),
    TopicKey(
        "documents",
        "list of `pdf`, `docx`, `odt`, `pptx`, `epub`, `jats`, `text`, `markdown`, `latex`",
        '["pdf", "docx", "odt", "pptx", "epub", "jats"]',
        "Documents that count as pages, too, whatever their media type. `pdf`, `markdown` and "
        "`latex` need the extra `documents`: a topic that names one fails at start without it; by "
        "default PDFs fail as `missing-library`. `[]` fetches no documents. See "
        "docs/how-to/documents.md.",
    ),
    TopicKey(
        "max_depth",
        COUNT_OR_ZERO,
        NO_LIMIT,
        "Maximum number of links from the nearest seed; 0 fetches only the seeds.",
    ),
    TopicKey("max_pages_per_host", COUNT, NO_LIMIT, "Maximum number of pages of one host."),
    TopicKey(
        "max_pages_per_directory",
        COUNT,
        NO_LIMIT,
        "Maximum number of pages of one directory: the same host, and the same path up to its last "
        "slash. Limits calendars, search results and other endless sections.",
    ),
    TopicKey(
        "max_pages_per_address",
        COUNT,
        NO_LIMIT,
        "Maximum number of pages from one IP address, over all its hosts. No effect on a recorded "
        "web, which has no addresses.",
    ),
    TopicKey(
        "max_page_bytes",
        COUNT,
        "10_000_000",
        "Larger pages are cut off and count as failed.",
    ),
    TopicKey(
        "max_links_per_page",
        COUNT,
        "5_000",
        "Maximum number of different link targets taken from one page, in document order; the "
        "report counts the rest (`links_over_limit` in `stats.json`). Sitemaps and feeds have a "
        "limit of 50,000, simulated crawls always 5,000.",
    ),
    TopicKey(
        "private_addresses",
        FLAG,
        "false",
        "If true, allow loopback, link-local and private networks, for a crawl of your own "
        "intranet. Otherwise the crawl refuses such an address as link, redirect target and "
        "resolved name. See docs/reference/crawl-folder.md#kinds-of-failure.",
    ),
    TopicKey(
        "near_duplicates",
        FLAG,
        "true",
        "A page that differs from an earlier one in a few words is a duplicate: it does not count "
        "as harvest and its links are not followed. If false, only pages with the same text are "
        "duplicates. See docs/explanation/duplicates.md.",
    ),
    TopicKey(
        "mirrors",
        FLAG,
        "true",
        "Fetch sites and folders that hold the same pages once. If false, fetch each. See "
        "docs/explanation/duplicates.md#mirrors.",
    ),
    TopicKey(
        "traps",
        FLAG,
        "true",
        "Refuse links into crawl traps: calendars, endless paths, filters, session ids, soft 404s, "
        "unlimited host names. See docs/explanation/traps.md.",
    ),
    TopicKey(
        "spam",
        TEXT,
        '"avoid"',
        'What to do with pages that are probably spam. `"avoid"`: they neither guide the crawl nor '
        'count as harvest. `"report"`: store the probability only. `"ignore"`: do not compute it. '
        "See docs/explanation/web-spam.md.",
    ),
    TopicKey(
        "javascript",
        TEXT,
        '"report"',
        'What to do with pages that show nothing without JavaScript. `"report"`: count them and '
        'their hosts. `"render"`: let a browser run their scripts, where that is worth its cost; '
        'needs the extra `javascript` and Chromium. `"ignore"`: do not look for them. See '
        "docs/how-to/javascript.md.",
    ),
    TopicKey(
        "javascript_hosts",
        HOSTS,
        "[]",
        "Hosts, with their subdomains, that scripts of rendered pages may request besides their "
        "own site and the public script libraries.",
    ),
    TopicKey(
        "drop_parameters",
        "list of names",
        "[]",
        "Query parameters that do not change the page, such as sort orders, views and session ids. "
        "The crawl removes them from links and redirects, not from seeds and a spider's own "
        "requests. `view_*` matches all names that begin with `view_`; matching is case-sensitive. "
        "Campaign, click and common session parameters are always removed: see "
        "docs/explanation/hostile-input.md#urls.",
    ),
    TopicKey(
        "keep_parameters",
        "list of names",
        "[]",
        "Query parameters that always change the page. The crawl never learns to ignore them and "
        "never drops them for a prefix in `drop_parameters`. A name in both lists is an error. See "
        "docs/explanation/traps.md#what-is-learned.",
    ),
)

POLITENESS_KEYS = (
    TopicKey(
        "user_agent",
        TEXT,
        REQUIRED,
        "Sent with every request and matched against robots.txt. It must contain a contact, a web "
        "address or an e-mail address, so that webmasters can reach you.",
    ),
    TopicKey(
        "delay_s",
        NUMBER,
        "1.0",
        "Seconds between two requests to one host. A longer crawl-delay in robots.txt takes "
        "precedence.",
    ),
    TopicKey(
        "delays",
        "numbers by host name",
        "{}",
        "Delays of single hosts and their subdomains instead of `delay_s`: "
        '`delays = { "slow.example" = 10.0 }`. The most specific name applies; ports are ignored. '
        "They may be shorter, for your own hosts.",
    ),
    TopicKey(
        "fetch_time_factor",
        NUMBER,
        "10.0",
        "The delay of a host is at least this many times the duration of its last response, at "
        "most an hour, so slow servers are asked less often "
        "([Mercator](https://doi.org/10.1023/A:1019213109274)). `0` switches it off.",
    ),
    TopicKey(
        "per_address",
        FLAG,
        "true",
        "Hosts at one IP address share one connection and one delay, that of the host fetched "
        "last. Set it to false if your hosts are behind large content delivery networks.",
    ),
    TopicKey("robots", FLAG, "true", "Obey robots.txt. Set it to false only for your own hosts."),
    TopicKey(
        "noindex",
        TEXT,
        '"leave-out"',
        "What to do with pages that ask not to be indexed, by a robots meta tag, by X-Robots-Tag, "
        "or by an `unavailable_after` date in the past, addressed to all robots or to the product "
        'name of your `user_agent`. `"leave-out"`: follow their links, but exclude them from the '
        "harvest and the WARC; `pages.parquet` lists them as `noindex`, without a title; the "
        'add-on drops items that a spider makes of them. `"keep"`: treat them like other pages. '
        "Training samples are always kept. See docs/how-to/library.md#items.",
    ),
    TopicKey(
        "nofollow",
        FLAG,
        "true",
        "Do not follow links with rel=nofollow, ugc or sponsored, or on pages that say nofollow. "
        "`links.parquet` lists them. A plain link to the same target on another page is followed. "
        "If false, follow them all.",
    ),
    TopicKey("concurrency", COUNT, "16", "Maximum number of requests in flight, over all hosts."),
    TopicKey("timeout_s", POSITIVE, "30.0", "Timeout of a request in seconds."),
    TopicKey("max_tries", COUNT, "3", "Maximum number of requests for one page."),
    TopicKey(
        "suspend_s",
        NUMBER,
        "3600.0",
        "A host that only fails (eight failures in a row, or `max_tries` failures to fetch its "
        "robots.txt for the first time) is suspended for this many seconds and then tried again; "
        "its links stay queued. The time doubles with each suspension, up to a day; after the "
        "third the crawl gives the host up. `0` gives it up at once.",
    ),
    TopicKey(
        "patience",
        NUMBER,
        "2.0",
        "How long, in delays, a link waits for a clearly better one whose host is busy or not due "
        "yet. More patience: fewer pages per second, more of them on topic. `0` does not wait.",
    ),
)

BUDGET_KEYS = (
    TopicKey("pages", COUNT, NO_LIMIT, "Pages fetched."),
    TopicKey("hours", POSITIVE, NO_LIMIT, "Running time."),
    TopicKey("bytes", COUNT, NO_LIMIT, "Bytes downloaded."),
    TopicKey(
        "min_harvest",
        "number above 0, at most 1",
        NO_LIMIT,
        "Least share of pages on topic among the last `min_harvest_pages` pages. Below it the "
        "topic is exhausted, or was not found, and the crawl ends. From seeds off topic a crawl "
        "may need hundreds of pages before the first one on topic. Clusters ignore it.",
    ),
    TopicKey(
        "min_harvest_pages", COUNT, "500", "Number of pages over which `min_harvest` is measured."
    ),
)

REVISIT_KEYS = (
    TopicKey(
        "continuous",
        FLAG,
        "false",
        "If true, the crawl goes on after its first harvest: it visits its pages again, fetches "
        "new ones, and ends only when `hours` have passed or you stop it. `focused crawl "
        "--continuous` does the same. `[budget]` then limits the first harvest. See "
        "docs/how-to/freshness.md.",
    ),
    TopicKey(
        "policy",
        TEXT,
        '"hazard"',
        "What decides when a page is visited again, by name: see "
        "docs/reference/revisit-policies.md.",
    ),
    TopicKey(
        "pages_per_day",
        COUNT,
        "a seventh of the pages",
        "Downloads a day after the first harvest, of pages to visit again and of new pages "
        "together. By default a page is visited once a week on average.",
    ),
    TopicKey("bytes_per_day", COUNT, NO_LIMIT, "Bytes downloaded a day after the first harvest."),
    TopicKey("hours", POSITIVE, NO_LIMIT, "Running time after which a continuous crawl ends."),
    TopicKey(
        "share",
        "share",
        "",
        "Fixed share of the downloads that are revisits, for example `0.5`. Without it revisits "
        "and new links compete by the relevant new content expected from one download.",
    ),
    TopicKey("min_interval_hours", NUMBER, "1.0", "A page is not visited again sooner than this."),
    TopicKey(
        "max_interval_days",
        POSITIVE,
        "three mean intervals",
        "Each page is visited at least this often, whatever a visit is worth. By default a page "
        "that is worth as much as one of relevance 1 waits three mean intervals at most, one of "
        "half the worth six.",
    ),
    TopicKey(
        "min_pace",
        "share",
        "a third",
        "Each page is visited at least at this share of the pace at which all would be visited "
        "alike. More is fairer to quiet sites, and makes the collection as a whole less fresh.",
    ),
    TopicKey(
        "by_relevance",
        FLAG,
        "true",
        "Weight pages by their relevance. If false, all pages of the collection count the same.",
    ),
    TopicKey(
        "host_weights",
        "numbers by host name",
        "{}",
        'Factors for hosts and their subdomains: `host_weights = { "news.example" = 3.0 }`. A page '
        "of weight 0 is visited only after `max_interval_days`, and never without it.",
    ),
    TopicKey(
        "path_weights",
        "numbers by regular expression",
        "{}",
        'Factors for pages whose path and query match: `path_weights = { "^/archive/" = 0.1 }`. '
        "The first match applies, together with the host's factor.",
    ),
)

OUTPUT_KEYS = (
    TopicKey(
        "folder",
        PATH,
        "`crawls/NAME` in the current directory",
        "The crawl's folder; created if missing. A relative path is relative to the topic file.",
    ),
    TopicKey(
        "warc",
        TEXT,
        '"full"',
        'What the WARC holds. `"full"`: all responses and requests; `"responses"`: the '
        'responses of fetched pages; `"off"`: no WARC. `true` means `"full"`, `false` means '
        '`"off"`. See docs/reference/crawl-folder.md#the-warc.',
    ),
    TopicKey(
        "max_warc_bytes",
        COUNT,
        "1_000_000_000",
        "Start another WARC file when one reaches this size.",
    ),
    TopicKey(
        "parquet",
        FLAG,
        "true",
        "Write `pages.parquet` and `links.parquet`. Without them the crawl prints no report at its "
        "end.",
    ),
)

CLUSTER_KEYS = (
    TopicKey(
        "storage",
        TEXT,
        '""',
        "The storage that all machines of a crawl share: a folder such as `file:///mnt/crawls`, or "
        "`s3://BUCKET/FOLDER` and others of fsspec. The results come there, too.",
    ),
    TopicKey(
        "unit",
        TEXT,
        '"domain"',
        'What stays in one process: all hosts of a registered domain (`"domain"`), or each host '
        'by itself (`"host"`). It cannot be changed later.',
    ),
)

DEEP_WEB_KEYS = (
    TopicKey(
        "hosts",
        HOSTS,
        "[]",
        "Hosts, with their subdomains, whose search forms the crawl may use. Only forms that send "
        "one text by GET are used. Without hosts no form is.",
    ),
    TopicKey("queries", COUNT, "100", "Queries that one form is sent at most."),
    TopicKey("result_pages", COUNT, "5", "Pages of results that are fetched for a query at most."),
    TopicKey(
        "stop_after",
        COUNT,
        "10",
        "The crawl leaves a form after this many queries in a row without a new relevant page.",
    ),
)

_SECRET = "`env:NAME` or `keyring:SERVICE/USER`"  # noqa: S105  # a type in the reference

LOGIN_KEYS = (
    TopicKey(
        "hosts",
        "list of host names",
        REQUIRED,
        "The hosts of the login, with a port if it is not the scheme's own "
        '(`"intranet.example:8080"`). No other host gets a credential or a cookie, subdomains '
        "included.",
    ),
    TopicKey(
        "method",
        TEXT,
        '"form"',
        "`form` fills in the login form at `url`; `basic` sends user name and password with every "
        "request (RFC 7617); `bearer` sends `token` (RFC 6750); `cookies` sends the cookies of a "
        "browser session.",
    ),
    TopicKey(
        "url",
        TEXT,
        '""',
        "`form`: the page with the login form, on one of `hosts`. `cookies`: the page that "
        "requests of an ended session are redirected to.",
    ),
    TopicKey(
        "username",
        f"text, {_SECRET}",
        '""',
        "`form`, `basic`: the user name, or where to find it.",
    ),
    TopicKey(
        "password",
        _SECRET,
        '""',
        "`form`, `basic`: where to find the password: the environment variable NAME, or the entry "
        "of USER at SERVICE in the keyring of the operating system. A password in the file is an "
        "error.",
    ),
    TopicKey("token", _SECRET, '""', "`bearer`: where to find the token."),
    TopicKey(
        "cookies",
        PATH,
        "",
        "`cookies`: a file in the Netscape format (`cookies.txt`), which extensions of all "
        "browsers export. Cookies of other hosts in it are ignored.",
    ),
    TopicKey(
        "form",
        TEXT,
        '""',
        "`form`: CSS selector of the form; by default the first form with a password field.",
    ),
    TopicKey(
        "username_field",
        TEXT,
        '""',
        "`form`: name of the field for the user name; by default the last text or e-mail field "
        "before the password field.",
    ),
    TopicKey(
        "password_field",
        TEXT,
        '""',
        "`form`: name of the field for the password; by default the first password field.",
    ),
    TopicKey(
        "fields",
        "texts by field name",
        "{}",
        '`form`: values of further fields: `fields = { remember = "1" }`. Hidden fields keep '
        "their values without it.",
    ),
    TopicKey(
        "expired_text",
        TEXT,
        '""',
        "Text that only pages of an ended session contain, such as `Please sign in`. Status 401 "
        "and 403, and redirects to `url`, are noticed without it.",
    ),
    TopicKey(
        "max_tries",
        COUNT,
        "3",
        "`form`: failed logins in a row, such as timeouts, after which the crawl waits for "
        "`politeness.suspend_s`. A name or password that the site rejects is not tried again.",
    ),
    TopicKey(
        "allow_http",
        FLAG,
        "false",
        "If true, send credentials over unencrypted http, too. An error if `url` is https.",
    ),
)

TOPIC_KEYS: dict[str, tuple[TopicKey, ...]] = {
    "": HEAD_KEYS,
    "seeds": SEED_KEYS,
    "training": TRAINING_KEYS,
    "scope": SCOPE_KEYS,
    "politeness": POLITENESS_KEYS,
    "budget": BUDGET_KEYS,
    "revisit": REVISIT_KEYS,
    "output": OUTPUT_KEYS,
    "login": LOGIN_KEYS,
    "deep_web": DEEP_WEB_KEYS,
    "cluster": CLUSTER_KEYS,
}
"""Keys by section; ``""`` is the head of the file."""
