"""A crawl whose pages have structure, metadata, duplicates and hostile texts."""

from pathlib import Path

from focused.web.page import Fetched
from tests.support.simulated import Simulation, site, topic

HOME = "http://a.test/"
ARTICLE, COPY, GERMAN, EVIL, SHIPS = (
    HOME + name for name in ("article", "copy", "german", "evil", "ships")
)
OTHER = "http://whales.example.org/krill"
WHALES = "The whale eats krill with its fluke in the cold sea, and its blubber keeps it warm. "

BODY = f"""
<nav><ul><li><a href="/">Home</a></li><li><a href="/ships">Ships</a></li></ul></nav>
<main><h1>Whales of the sea</h1><p>{WHALES * 3}</p>
<h2>Counting <code>whale</code> calls</h2><p>{WHALES * 2}</p>
<pre class="language-python">def count(whales):
    return  len(whales)  # * not emphasis *</pre>
<p>{WHALES}</p>
<ul><li>Blue whale of the south</li><li>Grey whale of the north</li></ul>
<table><tr><th>whale</th><th>length</th></tr><tr><td>blue</td><td>30 m</td></tr>
<tr><td>grey</td><td>15 m</td></tr></table><p>{WHALES * 2}</p></main>
<footer><p>Imprint of the site</p></footer>
"""
_ARTICLE_HEAD = """
<meta name="author" content="Ada Krill"><meta name="robots" content="noarchive, noai">
<meta property="article:published_time" content="2024-03-05T10:00:00Z">
<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">
"""
EVIL_TITLE = '=HYPERLINK("http://evil.test/","whale") '
_EVIL_TEXT = (
    "=cmd|' /C calc'!A0 whale &lt;script&gt;alert(1)&lt;/script&gt; [whale](javascript:alert(1)) "
    "![x](http://evil.test/x.png) **whale** &#27;]0;owned&#7; \u202ewhale\u202c `rm` "
)


def _page(
    url: str, title: str, body: str, head: str = "", lang: str = "en", **headers: str
) -> Fetched:
    html = (
        f'<!doctype html><html lang="{lang}"><head><title>{title}</title>{head}</head>'
        f"<body>{body}</body></html>"
    )
    return Fetched(url, 200, {"content-type": "text/html; charset=utf-8", **headers}, html.encode())


def _links(*links: tuple[str, str]) -> str:
    return "".join(f'<p><a href="{url}">{anchor}</a></p>' for url, anchor in links)


def corpus_web() -> dict[str, Fetched]:
    """Six pages on whales, one of them a duplicate, and one on ships."""
    links = _links(
        (ARTICLE, "the whale article"),
        (COPY, "copy"),
        (GERMAN, "deutsch"),
        (EVIL, "=1+1 \x1b[31mwhale"),
        (SHIPS, "ships"),
        (OTHER, "krill"),
    )
    return site(
        _page(HOME, "Whales", f"<main><p>{WHALES * 4}</p>{links}</main>"),
        _page(ARTICLE, "Whales of the sea", BODY, _ARTICLE_HEAD),
        _page(COPY, "Whales of the sea", BODY, _ARTICLE_HEAD),
        _page(GERMAN, "Wale", f"<main><p>Der Wal, whale. {WHALES * 3}</p></main>", lang="de"),
        _page(
            EVIL,
            EVIL_TITLE,
            f"<main><h1>{EVIL_TITLE}</h1><p>{_EVIL_TEXT * 5}</p><p>{WHALES * 3}</p></main>",
        ),
        _page(SHIPS, "Ships", f"<p>{'A ship has an engine and a deck in the harbour. ' * 6}</p>"),
        _page(
            OTHER,
            "Krill",
            f"<main><p>{WHALES * 5} Krill is small.</p></main>",
            **{"x-robots-tag": "noarchive"},
        ),
    )  # type: ignore[return-value]  # each answer is a page


def crawl_corpus_web(folder: Path) -> Path:
    """Crawl all pages and return the crawl's folder."""
    simulation = Simulation(topic(folder, HOME), corpus_web()).run()
    simulation.close()
    return simulation.topic.output.folder
