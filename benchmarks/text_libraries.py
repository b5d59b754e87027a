r"""Compare feed parsers and encoding detectors: correct answers, seconds and memory.

    uv run --with feedparser --with fastfeedparser --with atoma --with chardet \         python
benchmarks/text_libraries.py

Libraries that are not installed are skipped. Each large feed is read in its own process with a
limit of one minute. Prints two Markdown tables.
"""

from __future__ import annotations

import importlib
import importlib.util
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import endec
from resiliparse.parse.encoding import detect_encoding

from focused.web.decoding import detect_charset
from focused.web.feeds import parse_feed
from focused.web.page import Fetched

_WAIT_S = 60
Entries = list[tuple[str | None, str]]

_ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"{}><title>t</title><entry{}>{}</entry></feed>'
_RSS = '<rss version="2.0"{}><channel><title>t</title><item{}>{}</item></channel></rss>'
_OWN = "<title>own</title><link>http://b.test/z</link>"
_OWN_ATOM = '<title>own</title><link href="http://b.test/z"/>'
_OTHER = "<title>other</title><link>http://o.test/</link><url>http://o.test/i.png</url>"
CASES = {
    "xml:base, Atom": _ATOM.format(
        ' xml:base="http://b.test/x/"', ' xml:base="../"', '<title>own</title><link href="z"/>'
    ),
    "xml:base, RSS": _RSS.format(
        ' xml:base="http://b.test/"', "", "<title>own</title><link>z</link>"
    ),
    "image first": _RSS.format("", "", f"<image>{_OTHER}</image>{_OWN}"),
    "source first": _ATOM.format(
        "", "", f"<source>{_OWN_ATOM.replace('b.test', 'o.test')}</source>{_OWN_ATOM}"
    ),
    "another namespace's title": _RSS.format(
        ' xmlns:m="http://search.yahoo.com/mrss/"', "", f"<m:title>other</m:title>{_OWN}"
    ),
    "rel=self": _RSS.format(
        ' xmlns:a="http://www.w3.org/2005/Atom"',
        "",
        f'<a:link rel="self" href="http://o.test/"/>{_OWN}',
    ),
    "guid": _RSS.format("", "", "<title>own</title><guid>http://b.test/z</guid>"),
    "RSS 1.0": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    f' xmlns="http://purl.org/rss/1.0/"><channel><title>t</title></channel><item>{_OWN}</item></r:RDF>',
    "Atom 0.3": _ATOM.replace("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#").format(
        "", "", _OWN_ATOM
    ),
    "broken off": _RSS.format("", "", _OWN).partition("</channel>")[0] + "<item><tit",
    "sitemap": '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    "<url><loc>http://b.test/z</loc></url></urlset>",
}  # fmt: skip
LARGE: dict[str, Callable[[], bytes]] = {
    "5.6 MB of RSS": lambda: _RSS.format(
        "",
        "",
        "</item><item>".join(
            f"<title>Title {n} &amp; more</title><link>http://b.test/{n}</link><description>"
            f"&lt;p&gt;Some words of &lt;b&gt;number {n}&lt;/b&gt; &lt;a href='/x'&gt;and a link"
            f"&lt;/a&gt; {'more words ' * 20}&lt;/p&gt;</description>"
            for n in range(13_000)
        ),
    ).encode(),
    "1,500,000 deep": lambda: b'<rss version="2.0"><channel>' + b"<a>" * 1_500_000,
    "3,000,000 elements": lambda: b'<rss version="2.0"><channel><item>' + b"<a/>" * 3_000_000,
}


def _ours(body: bytes) -> Entries:
    page = parse_feed(Fetched("http://b.test/feed", 200, {"content-type": "text/xml"}, body))
    return [(link.url, link.anchor) for link in (page.links if page else ())]


def _by_mapping(name: str) -> Callable[[bytes], Entries]:
    def read(body: bytes) -> Entries:
        parsed = importlib.import_module(name).parse(body)
        return [(entry.get("link"), entry.get("title") or "") for entry in parsed.entries]

    return read


def _atoma(body: bytes) -> Entries:
    atoma: Any = importlib.import_module("atoma")
    if b"<feed" in body[:100]:
        entries = atoma.parse_atom_bytes(body).entries
        return [(entry.links[0].href, entry.title.value) for entry in entries]
    return [(item.link or item.guid, item.title) for item in atoma.parse_rss_bytes(body).items]


PARSERS = {
    "focused": _ours,
    "feedparser": _by_mapping("feedparser"),
    "fastfeedparser": _by_mapping("fastfeedparser"),
    "atoma": _atoma,
}


def is_right(parser: str, case: str) -> bool:
    """Whether the only entry has its own URL, and its own title if any."""
    try:
        found = PARSERS[parser](CASES[case].encode())
    except Exception:  # each library has its own errors, without a common base
        return False
    return found in ([("http://b.test/z", "own")], [("http://b.test/z", "")])


def measure(parser: str, large: str) -> str:
    """Read a large feed in this process; return CPU seconds and memory."""
    body = LARGE[large]()
    is_right(parser, "guid")  # what is loaded once
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    try:
        PARSERS[parser](body)
    except Exception as error:  # likewise
        return f"`{type(error).__name__}`"
    took_s = time.process_time() - began
    used_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    return f"{took_s:.2f} s, {used_mb:.0f} MB"


def _measured_apart(parser: str, large: str) -> str:
    command = [sys.executable, __file__, parser, large]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S)
    except subprocess.TimeoutExpired:
        return f"more than {_WAIT_S} s"
    return ended.stdout.strip() or "died"


_TEXTS = {
    "euc-kr": ("우리 홈페이지에 오신 것을 환영합니다.", "최신 소식", "회사 소개"),
    "shift_jis euc-jp iso-2022-jp": ("この本は資料を探す方法を説明する。", "最新情報", "会社概要"),
    "gbk": ("欢迎光临我们的网站,专门生产电脑周边设备。", "最新消息", "关于我们"),
    "big5": ("歡迎光臨我們的網站,專門生產電腦周邊設備。", "最新消息", "關於我們"),
    "windows-1251 koi8-r iso-8859-5": ("Сегодня в Москве ясно.", "Новости", "О компании"),
    "windows-1251 koi8-u": ("Всі люди народжуються вільними і рівними.",),
    "windows-1253 iso-8859-7": ("Καλώς ήρθατε στην ιστοσελίδα μας.", "Νέα", "Επικοινωνία"),
    "windows-1255": ("כל בני האדם נולדו בני חורין ושווים בערכם.",),
    "windows-1256": ("يولد جميع الناس أحرارا متساوين في الكرامة.",),
    "windows-874": ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน",),
    "windows-1250 iso-8859-2": ("Vítejte na našich stránkách.", "Wszyscy ludzie rodzą się wolni."),
    "windows-1254": ("Bütün insanlar hür, haklar bakımından eşit doğarlar.",),
    "windows-1252": (
        "Schöne Grüße aus München.", "Olá, você está na página.", "El niño comió una manzana.",
        "It’s a test", "© 2020 Example", "price: £20 or €30", "20 °C ± 5 µm", "naïve", "½ cup",
        "« Bonjour »", "Example®",
    ),
}  # fmt: skip


def _resiliparse(body: bytes) -> str:
    found = str(detect_encoding(body, max_len=0)).replace("_", "-")
    return {"iso2022-jp": "iso-2022-jp", "iso8859-11": "windows-874"}.get(found, found)


def _chardet(body: bytes) -> str:
    chardet: Any = importlib.import_module("chardet")
    return str(chardet.detect(body, prefer_superset=True)["encoding"])


DETECTORS = {"focused": detect_charset, "resiliparse": _resiliparse, "chardet": _chardet}


def score(detector: str) -> str:
    """How many pages a detector reads correctly, and how long one takes."""
    right, pages = 0, 0
    began = time.process_time()
    for encodings, texts in _TEXTS.items():
        for encoding in encodings.split():
            for text in texts:
                html = f"<html><title>{text}</title><div id=nav>x</div><p>{text} {text}</p></html>"
                body = endec.encode(html, encoding, errors="xmlcharrefreplace")
                pages += 1
                try:
                    found = DETECTORS[detector](body)
                    right += endec.decode(body, found, errors="replace") == html
                except LookupError:  # not an encoding of the Web
                    continue
    return f"{right} of {pages}, {(time.process_time() - began) / pages * 1000:.2f} ms"


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def main() -> None:
    """Print both tables, or measure one parser on one feed."""
    if len(sys.argv) == 3:
        print(measure(sys.argv[1], sys.argv[2]))
        return
    print("| parser | cases right |", " | ".join(LARGE), "|\n|---|---|", "---|" * len(LARGE))
    for parser in filter(_is_installed, PARSERS):
        right = sum(is_right(parser, case) for case in CASES)
        costs = " | ".join(_measured_apart(parser, large) for large in LARGE)
        print(f"| {parser} | {right} of {len(CASES)} | {costs} |")
    print("\n| detector | pages read right, time for one |\n|---|---|")
    for detector in filter(_is_installed, DETECTORS):
        print(f"| {detector} | {score(detector)} |")


if __name__ == "__main__":
    main()
