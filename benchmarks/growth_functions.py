"""The functions that take what strangers wrote, and pieces of hostile inputs for them.

Each :class:`Reader` passes a text to one or more functions; ``growth.py`` measures how their CPU
time grows with it. The pieces to repeat are those of the reader, and texts that the regular
expressions of its modules match.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import operator
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from focused.corpus import page_records, writers
from focused.crawl.dedup import duplicates
from focused.crawl.revisits import change_detection, page_fate, validators
from focused.documents import (
    convert,
    epub,
    extract,
    jats,
    markup,
    office,
    packages,
    pdf,
    texts,
)
from focused.documents.convert import DocumentError
from focused.kernels import page_links
from focused.labelling import page_renderer
from focused.rendering import decision, subrequests
from focused.scrapy_addon import login_gate, login_session
from focused.scrapy_addon.login_session import Credentials
from focused.spam import spam_classifier
from focused.text import content_signatures, documents, shingles, tokens, word_hashes
from focused.topic import Scope
from focused.topic.login import Login
from focused.web import (
    decoding,
    feed_entries,
    feeds,
    host_names,
    http_response,
    oai_pmh,
    page,
    scope_filter,
    url_patterns,
    urls,
    warc_reader,
    warc_records,
)
from focused.web.html import (
    declared_metadata,
    document,
    json_ld,
    main_text,
    parse,
    search_forms,
    text_blocks,
    text_structure,
    tree_walk,
)
from focused.web.page import Fetched, Link, Page
from focused.web.robots import robots_file, robots_rules, robots_tags
from focused_lab.changing_web import changed_content
from focused_lab.recorded_web import conditional_requests
from tests.support import made_documents

URL = "https://a.test/docs/page.html"
NOW = 1_800_000_000.0
HTML = {"content-type": "text/html; charset=utf-8"}

# fmt: off
SIGNS = (
    " ", "\n", "\t", "\xa0", "a", "A", "1", "<", ">", "&", "\"", "'", "/", "\\", "-", "_", ".", ",",
    ":", ";", "=", "?", "#", "%", "*", "(", ")", "[", "]", "{", "}", "|", "~", "@", "`", "é", "中",
    "\x00", "\ufeff", "a ", "a\n", " \n", "a.", "1.", "a,", "a=b;", "%41", "\xad", "e\u0301",
)
TAGS = (
    "<div>", "<p hidden>x", "<span>", "<b>", "<i><p>", "<a href=x>y", "<a href='/a", "<table><tr>",
    "<td>", "<ul><li>", "<dl><dd>", "<option>", "<select>", "<font>x<p>", "<!--", "<!-- -->", "<![",
    "<?xml ", "<script>", "<script ", "</script", "<style>", "<title>", "<textarea>", "<noscript>",
    "<iframe>", "<template>", "<svg><p>", "<math>", "<html a=b>", "<body x>", "<head>", "<meta ",
    "<meta charset=x>", "<base href=/a/>", "<h1>a", "<h2>a</h2>", "<br>", "<br>\xa0", "<hr>",
    "<img srcset='a 1x, ", "<img srcset='a 1x'>", "<form><input>", "<input name=q>", "<label>a",
    "<pre>", "<code>a", "<blockquote>", "<ruby><rt>", "<p style='display:none'>a", "<time>",
    "<time datetime=2020-01-01>", "<nav>", "<article>", "<p>word ", "<div class='a b'>",
    "<meta property='og:title' content='a'>", "<link rel=canonical href=/a>", "<p>a</p>",
    "<script type=application/ld+json>{", "<a rel=tag>", "<frame src=a>", "<area href=b>",
    "<p itemprop=author itemscope>", "<sup>1", "<cite>", "</p>", "</div>", "</", "<a", "<a ",
    "<button>", "<main>", "<form action='/", "<p>2020-01-01",
)
XML = (
    "<a", "<a>", "</a>", "<a/>", "<a b='c'>", "<![CDATA[", "]]>", "<!--", "-->", "<?a", "?>",
    "<!DOCTYPE ",
    "<!ENTITY a 'b'>", "&amp;", "&#65;", "&#xD800;", "<p>a</p>", "<sec><title>a</title>", "<ref>",
    "<table><tr><td>", "<xref>", "<alternatives>", "<loc>", "<url><loc>/a</loc></url>", "<item>",
    "<entry><link href='/a'/>", "<title>a", "<xhtml:link href='/a'/>", "<description>&lt;p&gt;",
    "<record><header>", "<dc:identifier>a</dc:identifier>", "<pubDate>", "xmlns:a='b' ",
)
HEADERS = (
    ",", ";", "=", "\"", "a=", "a=\"", "<a>", "<a>;rel=", "<a>; rel=canonical,", "max-age=", "W/",
    "\"a\"", "\"a\",", "noindex,", "a:", "a: noindex,", "unavailable_after:", "charset=", "; ",
    " ;", "url=", "0;url=", "1.", "Mon, ", "01 Jan ", "GMT", "00:", "expires=", "a=b; ", "-1", "+",
    "Path=/;", "é", " ", "\t", "(", ")", "\\", "'", ".", "1", "rel=\"canonical\" ", "utf-8",
)
URL_PIECES = (
    "/", "/a", "/1", "/..", "/./", "//", "?", "?a=b", "&a=b", "&", "=", "a=1&", ";a=b", "#", "%",
    "%41", "%2f", "%zz", ".", "a.", "-", "_", "1", "a1", "2020-01-01/", "/2020/01", "1.2.", "xn--",
    "é", "中", "@", ":", "[", "]", "\\", " ", "\t", "a-b_", "~", "0123456789abcdef", "index.html",
    ";jsessionid=", "utm_a=b&", "sid=1&", "+", "!", "*", "'", "|", "{", "\ud800", "/a/b", "A",
)
ROBOTS = (
    "User-agent: a\n", "User-agent: *\n", "User-agent: *\nAllow: /a\n", "Allow: /a\n",
    "Crawl-delay: 1",
    "Disallow: /*a\n", "Disallow: *", "*", "$", "Disallow: /", "Sitemap: /a\n", "Sitemap: ", "#",
    "\n",
    "\r", " ", "\ufeff", "1", "Crawl-delay: 1x\n", "a:", ":", "%41", "?", "useragent ", "\x00",
)
SCRIPTS = (
    "location", "location=", "location.href", ".replace(", "if ", "function", "on a=", "{", "\"",
    "'",
    "<script>location='http://a.test/'", "<script src=a>", "window.__a__=", "</script>", "=>", " ",
)
WORD = (
    "<w:p>", "</w:p>", "<w:p><w:r><w:t>a</w:t></w:r></w:p>", "<w:r><w:t>a</w:t></w:r>", "<w:tbl>",
    "<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>", "<w:hyperlink r:id='a'/>", "<w:sdt>", "a",
    "<w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr></w:p>", "<w:drawing/>", "<w:br/>", "&lt;",
    "<w:p><w:r><w:fldChar/><w:instrText>HYPERLINK a</w:instrText></w:r></w:p>",
)
ODT = (
    "<text:p>", "</text:p>", "<text:p>a</text:p>", "<text:h>a</text:h>", "<text:span>a</text:span>",
    "<text:list><text:list-item/></text:list>", "<text:a xlink:href='/a'>a</text:a>", "<text:s/>",
    "<text:list><text:list-item>", "<text:tab/>", "a", " ",
)
PPTX = (
    "<p:sp><p:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p></p:txBody></p:sp>", "<p:sp>", "<a:p>", "a",
    "<a:p><a:r><a:t>a</a:t></a:r></a:p>", "<p:grpSp>",
)
PLAIN = (
    "# a\n", "[a](b)", "[a]", "![", "> ", "- ", "1. ", "`", "```\n", "**a", "__", "|a|\n|-|\n",
    "a  \n",
    "\\section{a}", "\\textbf{", "{", "}", "$", "$$", "\\begin{a}", "\\end{a}", "%a\n", "\\",
    "\\href{a}{b}",
    "\\item ", "\\and ", "\\title{", "\\cite[", "https://a.test/", "www.a", "---\n",
    "title: a\n", "a@b.",
    "http://(", "&amp;", "~", "[^1]", "<a>", "\n\n", "\n",
)
JSON = (
    "{", "[", '[{"@graph":', '{"a":', '"', "\\", "1", "-", "e1", ",", "[],", "null,", "{}",
    "\\u0041", " ", "\n", "]", '{"author":[{"name":"a"}]},', "<!--", "//", "/*",
)
WARC = (
    "WARC/1.1\r\n", "\r\n", "\r\n\r\n", "a: b\r\n", "Content-Length: 1\r\n",
    "WARC-Type: response\r\n", "\x1f", "\n", " ", "a", "cookie: a\r\n", "set-cookie: ",
    "cookie: \x00", "Content-Length: -1\r\n", "HTTP/1.1 200 OK\r\n",
    "Transfer-Encoding: chunked\r\n",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Reader:
    """Functions that read one text, and what to repeat in it.

    ``frames`` are texts around the repeated pieces. ``chars`` is the length of a text in a test; a
    reader that is slow by nature takes a shorter one.
    """

    name: str
    read: Callable[[str], object]
    atoms: tuple[str, ...] = SIGNS
    frames: tuple[tuple[str, str], ...] = (("", ""),)
    """A text that takes less than ``noise_s`` at its full length is harmless."""
    chars: int = 16_000
    noise_s: float = 0.01
    further: tuple[Callable[..., object], ...] = ()
    """Functions that ``read`` does not name: methods, and what the named ones call."""

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """All functions that read the text."""
        return (*_named_functions(self.read), *self.further)

    @property
    def modules(self) -> set[str]:
        """The modules of the functions."""
        return {function.__module__ for function in self.functions}

    def pieces(self) -> list[str]:
        """Return all pieces to be repeated, each once."""
        found = [piece for name in self.modules for piece in pieces_of_module(name)]
        return list(dict.fromkeys([*self.atoms, *sorted(found)]))


def _named_functions(read: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """Yield the crawler's public functions that a function's source names, such as ``feeds.f``."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(read)))):
        if isinstance(node, ast.Name) and node.id == _read_normalised_url.__name__:
            yield from _named_functions(_read_normalised_url)
        elif isinstance(node, ast.Attribute) and "._" not in ast.unparse(node):
            name, _, rest = ast.unparse(node).partition(".")
            named = globals().get(name)
            if not getattr(named, "__name__", "").startswith("focused"):
                continue
            with suppress(AttributeError):
                named = operator.attrgetter(rest)(named)
                if callable(named) and not isinstance(named, type):
                    yield named


def fetched(body: str | bytes, media_type: str = HTML["content-type"]) -> Fetched:
    """Return a response with this body."""
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return Fetched(URL, 200, {"content-type": media_type}, raw)


def _page(text: str) -> Page:
    links = tuple(Link(URL, text[:2_000]) for _ in range(2))
    return Page(URL, text[:500], text=" ".join(text.split()), links=links)


def _read_html(text: str) -> None:
    response = fetched(text)
    parsed = parse.parse_page(response, robot="bot")
    decision.javascript_need(response, parsed)
    parse.needs_parser_process(response)


def _extract(text: str) -> None:
    extracted = document.extract_document(fetched(text))
    text_structure.render_markdown(extracted.blocks)
    text_structure.render_text(extracted.blocks)


def _structure(text: str) -> None:
    blocks = (
        text_structure.TextBlock(text_structure.PARAGRAPH, text),
        text_structure.TextBlock(text_structure.PARAGRAPH, "a\n" + text),
    )
    text_structure.render_markdown(blocks)
    text_structure.render_text(blocks)
    text_structure.clean_text(text)
    text_structure.clean_line(text, 100_000)
    text_structure.escape_markdown(text)
    for chunk in page_records.cut_into_chunks(blocks, 500):
        text_structure.render_text(chunk.blocks)
    main_text.plain_text_blocks(text)


def _read_headers(text: str) -> None:
    names = ("location", "retry-after", "content-type", "x-robots-tag", "refresh", "link", "etag")
    values = dict.fromkeys(
        (*names, "last-modified", "date", "cache-control", "content-length"), text
    )
    for status in (200, 301, 304, 429, 503):
        http_response.outcome_from_response(status, values, URL, b"<p>a", 0.1, NOW)
    http_response.retry_after_s(values, NOW)
    http_response.parse_http_date(text)
    http_response.parse_date_time(text)
    http_response.cache_lifetime_s(values)
    conditional_requests.is_not_modified({"if-none-match": text, "if-modified-since": text}, values)
    conditional_requests.headers_of_not_modified(values)
    http_response.parse_canonical(text)
    list(http_response.linked_targets(text, "license"))
    http_response.parse_refresh(text)
    robots_rules.max_age_s(values)
    robots_tags.parse_robots_directives(text, [text], "bot")
    robots_tags.robots_words(text, [text])
    validators.parse_validators(values, NOW)
    validators.modification_time(values, NOW, NOW)
    validators.clock_offset_s(values, NOW)
    subrequests.lifetime("script", 200, values)
    decoding.media_type_of(values)
    decoding.media_type(text)
    decoding.encoding_in_content_type(text)
    decoding.encoding_of_label(text)
    declared_metadata.declared_metadata(None, URL, values)


def _read_cookies(text: str) -> None:
    session = login_session.LoginSession(Login(("a.test",)), Credentials())
    request = Request(URL)
    for value in (text, f"a=b; expires={text}", f"a=b; domain={text}; path={text}"):
        headers = {"Set-Cookie": value.encode("utf-8", "replace"), "Set-Cookie2": b"a"}
        session.take_cookies(request, Response(URL, headers=headers))
    session.expiry_sign(Response(URL, 302, {"Location": text.encode("utf-8", "replace")}))


def _read_url(text: str) -> None:
    resolve = urls.make_resolver(URL, "shift_jis")
    # A URL of more than 2,000 characters is refused: what is read then is the part that is not.
    for raw in (text, f"http://{text}", f"http://a.test/{text}", f"http://a.test/?{text}"):
        for given in (raw, raw[:1_990]):
            resolve(given)
            urls.encode_query(given, "shift_jis")
            scope_filter.find_url_trap(given)
            url_patterns.looks_like_token(given)
            host_names.is_private_host(given)
            host_names.is_loopback_name(given)
            host_names.is_local_name(given)
            host_names.registered_domain(given)
            with suppress(ValueError):
                host_names.canonical_address(given)
            host_names.parse_ip_address(given)
            url = urls.normalize_url(given)
            if url is not None:
                _read_normalised_url(url)


def _read_normalised_url(url: str) -> None:
    urls.host_of(url)
    host_names.site_key(url)
    urls.path_depth(url)
    urls.directory_of(url)
    urls.robots_url(url)
    scope_filter.find_url_trap(url)
    parameters = scope_filter.QueryParameterFilter(("a*",))
    parameters.apply(url)
    parameters.apply_to_target(url, URL)
    accepted = scope_filter.ScopeFilter(Scope())
    accepted.refusal_reason(url)
    accepted.is_plain(url)
    accepted.is_open(urls.host_of(url), 0)
    url_patterns.patterns_of_url(url)
    url_patterns.without_parts(url, url_patterns.ignorable_parts(url))
    url_patterns.differing_parts(url, url + "x")
    url_patterns.common_suffix(url, url + "x")
    list(url_patterns.prefixes_and_suffixes(url))
    tokens.url_words(url)
    search_forms.SearchForm(URL, "q").query_of(url)
    search_forms.SearchForm(URL, "q").url(url)
    login_gate.ends_session(url)


def _read_robots(text: str) -> None:
    parsed = robots_rules.parse_robots_body(text.encode("utf-8", "replace"), "bot")
    rules = robots_rules.rules_from_fetch(fetched(text, "text/plain"), NOW, parsed)
    rules.allows("https://a.test/" + "a" * 500, "bot")
    rules.allows(f"https://a.test/{text}", text)
    rules.is_for(text)
    pattern = robots_file.PathRule.of("/" + text[:2_000], allow=True)
    pattern.matches("/" + "a" * 2_000)
    rules.crawl_delay_s("bot")
    rules.sitemaps(URL)
    robots_rules.product_token(text)


def _read_feed(text: str) -> None:
    response = fetched(text, "application/xml")
    decoding.is_feed(response)
    decoding.feed_kind(response)
    decoding.gunzip(response.body, 1_000_000)
    feeds.parse_feed(response)
    feeds.parse_feed_entries(response)
    list(feed_entries.read_entries(text, feed_entries.FeedEntry(), URL))
    list(oai_pmh.read_oai_entries(text, URL))


def _read_directory_listing(text: str) -> None:
    response = Fetched("https://a.test/docs/", 200, HTML, text.encode("utf-8", "surrogatepass"))
    feeds.is_directory_listing(response)
    feeds.read_directory_listing(response)


def _read_dates(text: str) -> None:
    feed_entries.parse_feed_date(text)
    declared_metadata.parse_date(text)


def _decode(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    for media_type in ("text/html", "application/xhtml+xml", "", "text/html; charset=iso-2022-jp"):
        decoding.decode(raw, {"content-type": media_type})
    decoding.sniff_media_type(raw)
    decoding.encoding_in_document(raw, is_html=True)
    decoding.encoding_in_document(raw, is_html=False)
    decoding.detect_charset(raw)
    convert.document_format(fetched(raw, ""))


def _limit_markup(text: str) -> None:
    decoding.limit_markup(text)
    decoding.close_empty_elements(text)


def _read_forms(text: str) -> None:
    search_forms.find_search_forms(fetched(text))
    anchors = tuple(Link(f"{URL}?q=whale&n={n}", text[:300]) for n in range(len(text) // 300))
    search_forms.SearchForm(URL, "q").next_page(f"{URL}?q=whale", anchors)


def _fill_in_login(text: str) -> None:
    session = login_session.LoginSession(
        Login(("a.test",), url=URL, expired_text="gone"), Credentials("a", "b")
    )
    response = HtmlResponse(URL, body=text.encode("utf-8", "replace"), encoding="utf-8")
    with suppress(login_gate.LoginError):
        login_gate._fill_in(session, response)


def _read_words(text: str) -> None:
    given = _page(text)
    shingles.make_sketch(shingles.shingles(given.text))
    content_signatures.bag_of_words_hash(given)
    content_signatures.may_have_sort_parameters(given)
    content_signatures.content_fingerprint(given)
    content_signatures.text_digest(given)
    content_signatures.opening_digest(given)
    content_signatures.page_template(given)
    documents.hash_page(given)
    documents.page_words(given)
    tokens.tokenize(text)
    tokens.separate_words(text)
    word_hashes.hash_texts([text, text])
    writers.unescape_formulas(writers.escape_formulas(text))
    duplicates._normalise_title(text)
    page_fate._ERROR_TITLE.search(text)


def _signals(text: str) -> None:
    popular = spam_classifier.PopularWords.count([text, text])
    spam_classifier.content_signals(_page(text), popular)
    spam_classifier.body_text(_page(text))
    page_records.failed_rules(text, "en")


def _versions(text: str) -> None:
    blocks = text_blocks.text_blocks(fetched(text))
    version = change_detection.read_version(b"12345678", text, [*blocks, text])
    boilerplate = change_detection.HostBoilerplate()
    before = change_detection.sign_version(version, boilerplate)
    change_detection.detect_change(before, version, boilerplate)
    change_detection.page_blocks(URL, version)


def _read_json_ld(text: str) -> None:
    scripts = [text, json.dumps({"@type": "Article", "headline": text}), "[" * 200 + text]
    nodes = json_ld.page_nodes(scripts)
    list(json_ld.json_ld_nodes(scripts))
    json_ld.headline(nodes)
    list(json_ld.named_urls(nodes))
    tree_walk.is_json_ld(text)
    json_ld.is_part(text)


def _read_tree(text: str) -> None:
    tree = main_text.parse_tree(text)
    if tree is None:
        return
    declared_metadata.declared_metadata(tree, URL, {})
    document.find_day(tree, in_text=False)


def _main_text(text: str) -> None:
    tree = main_text.parse_tree(text)
    if tree is not None:
        main_text.main_text_blocks(tree)
        extract.structured_blocks(tree)


def _convert(function: Callable[..., bytes], *arguments: Any) -> Callable[[str], None]:
    def read(text: str) -> None:
        with suppress(DocumentError):
            function(text.encode("utf-8", "replace"), *arguments)

    return read


def _convert_document(
    function: Callable[[bytes], bytes], make: Callable[[str], bytes]
) -> Callable[[str], None]:
    def read(text: str) -> None:
        made = make(text)
        with suppress(DocumentError):
            function(made)
        convert.to_html(Fetched(URL, 200, {}, made))

    return read


def _make_pdf(text: str) -> bytes:
    printable = "".join(char for char in text if 31 < ord(char) < 127 and char not in "()\\")
    lines = [printable[place : place + 80] for place in range(0, len(printable), 80)]
    return made_documents.pdf(["a", *lines], links=[("a", URL)], title=printable[:80])


def _make_epub(text: str) -> bytes:
    return made_documents.epub({"a.xhtml": f"<html><body>{text}</body></html>"})


def _read_xml(text: str) -> None:
    with suppress(DocumentError):
        packages.parse_xml(text.encode("utf-8", "replace"), "a.xml")


def _find_urls(text: str) -> None:
    list(markup.find_urls(text))
    markup.is_web_url(text)


def _read_warc(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    head = b"HTTP/1.1 200 OK\r\n" + raw
    exchange = page.HttpExchange(b"GET / HTTP/1.1\r\n" + raw, head)
    builder = warc_records.WarcRecordBuilder()
    builder.capture_exchange(URL, exchange, raw, NOW, "")
    builder.capture(Fetched(URL, 200, {"a": text}, raw))
    exchange.response_values("a")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.warc"
        for content in (raw, b"WARC/1.1\r\nWARC-Type: response\r\n" + raw):
            path.write_bytes(content)
            list(warc_reader.read_responses(path))
            warc_reader.read_response(path, 0)
            warc_reader.read_original_record(path, 0)
        path.write_bytes(warc_records.response_record(Fetched(URL, 200, {"a": text}, raw)))
        list(warc_reader.read_responses(path))


def _edit_recorded(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    changed_content.paragraph_words(raw)
    links = changed_content.link_targets(raw)
    changed_content.remove_links(raw, links[:1], links[1:2])
    edits = [changed_content.Edit(str(n), 0.1, 0.1) for n in range(2)]
    changed_content.apply_edits(raw, edits, [(b"word",) * 9])
    changed_content.insert_at_top(raw, b"a")
    changed_content.insert_at_end(raw, b"a")
    changed_content.insert_in_head(raw, b"a")


def _small_functions(text: str) -> None:
    page_links.collapse_whitespace(text, 100_000)
    text_blocks.is_navigation("div", {"class": text, "id": text, "role": text})


def _render_labels(text: str) -> None:
    response = fetched(text)
    page_renderer.readable_text(response)
    page_renderer.original_document(page_renderer.sanitised_html(response))


# Parsers of HTML walk the open elements at each tag; decoding.limit_markup bounds what that costs.
_TREE_NOISE_S = 0.04
_BODY = (("<body>", ""), ("<p>", "x</p>"))
_LINES = (("", ""), ("a", "b"), (" ", "\n"))
_URLSET = "<urlset><url><loc>https://a.test/</loc></url>"
_RSS = "<rss><channel><item><link>/a</link><description>"

READERS: tuple[Reader, ...] = (
    Reader(
        "page",
        _read_html,
        (*TAGS, *SIGNS),
        _BODY,
        noise_s=_TREE_NOISE_S,
        further=(
            decision.read_signs,
            tree_walk.get,
        ),
    ),
    Reader(
        "document of a page",
        _extract,
        (*TAGS, *SIGNS),
        (("<article><p>Some words of a main text, long enough to be one. ", ""),),
        6_000,
        further=(extract.extract_any,),
    ),
    Reader(
        "main text",
        _main_text,
        TAGS,
        _BODY,
        6_000,
        further=(main_text.blocks_of,),
    ),
    Reader(
        "metadata",
        _read_tree,
        TAGS,
        _BODY,
        6_000,
    ),
    Reader(
        "blocks",
        _structure,
        (*SIGNS, *PLAIN),
        _LINES,
    ),
    Reader(
        "headers",
        _read_headers,
        HEADERS,
        (("", ""), ("a", "b"), ("<a>", "!"), ("0;", "x")),
        further=(conditional_requests.is_conditional,),
    ),
    Reader(
        "cookies",
        _read_cookies,
        HEADERS,
        (("", ""), ("a=b;", "x")),
        6_000,
        further=(
            login_session.LoginSession.take_cookies,
            login_session.LoginSession.expiry_sign,
        ),
    ),
    Reader(
        "URL",
        _read_url,
        URL_PIECES,
        (("", ""), ("a", "!")),
        further=(
            scope_filter.QueryParameterFilter.apply,
            scope_filter.QueryParameterFilter.apply_to_target,
            scope_filter.ScopeFilter.refusal_reason,
            scope_filter.ScopeFilter.is_plain,
            scope_filter.ScopeFilter.is_open,
            search_forms.SearchForm.query_of,
            search_forms.SearchForm.url,
            url_patterns.part_with_value,
            url_patterns.part_name,
        ),
    ),
    Reader(
        "robots.txt",
        _read_robots,
        ROBOTS,
        (("", ""), ("User-agent: *\nDisallow: /", "x\n"), ("User-agent: *\nCrawl-delay: ", "x")),
        further=(
            robots_file.parse_robots,
            robots_file.decode_robots,
            robots_file.cut_to_whole_lines,
            robots_rules.RobotsRules.allows,
            robots_rules.RobotsRules.is_for,
            robots_rules.RobotsRules.crawl_delay_s,
            robots_rules.RobotsRules.sitemaps,
            robots_file.PathRule.matches,
            robots_file.PathMatcher.allow,
            robots_rules.is_long_robots_file,
        ),
    ),
    Reader(
        "feed",
        _read_feed,
        (*XML, *TAGS),
        (("", ""), (_URLSET, ">"), (_RSS, ">"), ("<OAI-PMH><ListRecords>", ">")),
        further=(
            feed_entries.escape_unclosed_tags,
            feed_entries.feed_target,
        ),
    ),
    Reader(
        "directory listing",
        _read_directory_listing,
        (*SIGNS, *TAGS, 'href="', '<a href="a">', '">', "2024-01-", "01-Jan-2024 10:00", " 10:00"),
        (("<title>Index of /</title>", ""), ('<title>Index of /</title><a href="a">', "1")),
    ),
    Reader(
        "date",
        _read_dates,
        HEADERS,
        (("", ""), ("2020-01-01", "x"), ("Mon, 01 ", "")),
    ),
    Reader(
        "charset",
        _decode,
        (*TAGS, *SIGNS, *XML, "\x1b$B", "\x1b(J"),
        (("", ""), ("<meta ", ">")),
        further=(convert.is_ole,),
    ),
    Reader(
        "limits on tags",
        _limit_markup,
        (*TAGS, *SIGNS),
        (("", ""), ("<p>" * 10_001, "")),
        64_000,
    ),
    Reader(
        "search form",
        _read_forms,
        (*TAGS, *SIGNS),
        (("<form><input name=q>", ""), ("", "")),
        further=(search_forms.SearchForm.next_page,),
        noise_s=_TREE_NOISE_S,
    ),
    Reader(
        "login form",
        _fill_in_login,
        TAGS,
        (("<form method=post><input name=user><input type=password name=p>", ""), ("", "")),
        6_000,
        noise_s=_TREE_NOISE_S,
        further=(login_gate.log_in_by_form,),
    ),
    Reader(
        "words",
        _read_words,
        (*SIGNS, "the ", "whale ", "aB", "ab中", "א"),
        _LINES,
        further=(
            word_hashes.hash_texts_once,
            word_hashes.hash_word,
        ),
    ),
    Reader(
        "signals of spam",
        _signals,
        (*SIGNS, "the ", "whale ", "# ", "- a\n", "a…\n"),
        _LINES,
    ),
    Reader(
        "versions of a page",
        _versions,
        (*TAGS, *SIGNS, "January 1 ", "12:00:00 ", "2020-"),
        noise_s=_TREE_NOISE_S,
    ),
    Reader(
        "JSON-LD",
        _read_json_ld,
        JSON,
        (("", ""), ("[", "]"), ('{"@type":"Article","author":[', "]}")),
    ),
    Reader(
        "small functions of pages",
        _small_functions,
        (*SIGNS, *SCRIPTS),
        (("", ""), ("location", ""), ("<script>location", "</script>")),
    ),
    Reader(
        "plain text",
        _convert(texts.convert_text, {}),
        (*SIGNS, *PLAIN),
        _LINES,
        further=(texts.convert_text,),
    ),
    Reader(
        "Markdown",
        _convert(texts.convert_markdown, {}),
        (*SIGNS, *PLAIN),
        _LINES,
        4_000,
        further=(texts.convert_markdown,),
    ),
    Reader(
        "JATS",
        _convert(jats.convert_jats),
        XML,
        (("<article><body><p>", "</p></body></article>"), ("<article><body>", "")),
        further=(jats.convert_jats,),
    ),
    Reader("XML of a package", _read_xml, XML),
    Reader(
        "URLs in a text",
        _find_urls,
        (*SIGNS, *URL_PIECES),
        (("", ""), ("http://", "x")),
    ),
    Reader(
        "WARC",
        _read_warc,
        WARC,
        further=(
            warc_reader.parse_response_record,
            warc_records.WarcRecordBuilder.capture_exchange,
            warc_records.WarcRecordBuilder.capture,
            warc_records.format_http_head,
            page.HttpExchange.response_values,
        ),
    ),
    Reader(
        "recorded page",
        _edit_recorded,
        TAGS,
    ),
    Reader(
        "label page",
        _render_labels,
        (*TAGS, *SIGNS),
        # Deep trees take a second and then are refused, in a process that ends after three.
        noise_s=0.5,
    ),
    *(
        Reader(
            f"document: {kind}",
            _convert_document(convert_, make),
            pieces,
            (("", ""), ("</w:p>", "<w:p>") if kind == "docx" else ("a", "b")),
            chars=4_000 if kind == "pdf" else 16_000,
            further=(
                convert_,
                convert.to_html,
            ),
        )
        for kind, convert_, make, pieces in (
            ("docx", office.convert_docx, made_documents.docx, WORD),
            ("odt", office.convert_odt, made_documents.odt, ODT),
            ("pptx", office.convert_pptx, made_documents.pptx, PPTX),
            (
                "pdf",
                pdf.convert_pdf,
                _make_pdf,
                (*SIGNS, "a 1 ", "1 2 3 ", "Chapter 1. ", "http://a"),
            ),
            ("epub", epub.convert_epub, _make_epub, (*TAGS, *XML)),
        )
    ),
)

_BY_CALLER = "called by a function that is measured"
_OWN_TEXT = "takes a text of the crawl's own"
EXCEPTIONS: Mapping[str, str] = {
    "focused.documents.convert:BoundedConverter.to_html": "calls to_html in a process",
    "focused.documents.convert:DocumentConverter.format_of": "calls document_format",
    "focused.documents.convert:DocumentConverter.needs_process": "calls document_format",
    "focused.documents.convert:DocumentConverter.takes_type": "looks up a media type",
    "focused.documents.convert:DocumentConverter.to_html": "calls to_html",
    "focused.documents.packages:text_of": _OWN_TEXT,
    "focused.documents.packages:texts_of": _OWN_TEXT,
    "focused.documents.convert:needs_process": _OWN_TEXT,
    "focused.documents.markup:MarkupWriter.block": _BY_CALLER,
    "focused.documents.markup:MarkupWriter.link": _BY_CALLER,
    "focused.documents.markup:MarkupWriter.raw": _BY_CALLER,
    "focused.documents.markup:MarkupWriter.text_block": _BY_CALLER,
    "focused.documents.packages:Package.read": _BY_CALLER,
    "focused.documents.packages:Package.read_xml": _BY_CALLER,
    "focused.text.static_embedding:StaticEmbedding.embed": "looks up words of bounded length",
    "focused.text.static_embedding:index_pieces": "the package's own table",
    "focused.text.static_embedding:read_embedding": "the package's own table",
    "focused.text.static_embedding:split_word": "a word of bounded length",
    "focused.web.html.tree_walk:TreeWalk.add_declared_link": _BY_CALLER,
    "focused.web.page:Fetched.as_failure": _OWN_TEXT,
    "focused.web.page:NotModified.as_failure": _OWN_TEXT,
    "focused.web.robots.robots_rules:RobotsRules.from_state": _OWN_TEXT,
    "focused.web.robots.robots_rules:RobotsRules.memory_bytes": _OWN_TEXT,
    "focused.web.scope_filter:compile_parameter_names": "patterns of a topic file",
    "focused.web.warc_records:WarcRecordBuilder.revisit": _OWN_TEXT,
    "focused.web.warc_records:format_digest": _OWN_TEXT,
    "focused.web.warc_records:record_id_from_name": _OWN_TEXT,
    "focused.web.warc_records:warcinfo_record": _OWN_TEXT,
}
"""Public functions that need no reader, and why."""


@cache
def pieces_of_module(name: str) -> tuple[str, ...]:
    """Return texts that the regular expressions of a module match, and parts of them."""
    found: dict[str, None] = {}
    for value in vars(importlib.import_module(name)).values():
        pattern = getattr(value, "__self__", value)
        if isinstance(pattern, re.Pattern):
            parsed = _parser.parse(pattern.pattern, pattern.flags)
            for piece in _pieces(parsed):
                if 0 < len(piece) <= 40:
                    found[piece] = None
    return tuple(found)


def _pieces(parsed: Any) -> Iterator[str]:
    """Yield a text that the expression matches, and one for each repeated or grouped part."""
    yield "".join(_example(code, value) for code, value in parsed)
    for code, value in parsed:
        for part in _parts(code, value):
            yield from _pieces(part)


def _parts(code: Any, value: Any) -> list[Any]:
    if code in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        return [value[2]]
    if code is _constants.SUBPATTERN:
        return [value[3]]
    if code is _constants.BRANCH:
        return list(value[1])
    if code is _constants.ATOMIC_GROUP:
        return [value]
    return []


def _example(code: Any, value: Any) -> str:
    if code is _constants.LITERAL:
        return chr(value)
    if code is _constants.BRANCH:
        return "".join(_example(*item) for item in value[1][0])
    if parts := _parts(code, value):
        return "".join(_example(*item) for item in parts[0])
    if code is _constants.IN:
        for kind, chars in value:
            if kind is _constants.LITERAL:
                return chr(chars)
            if kind is _constants.RANGE:
                return chr(chars[0])
            if kind is _constants.CATEGORY:
                return _OF_CATEGORY.get(str(chars), "a")
        return "a"
    if code in (_constants.ANY, _constants.NOT_LITERAL):
        return "a"
    return ""


_OF_CATEGORY = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_NOT_WORD": "-"}
