"""The text of a page's blocks without navigation and advertising."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.html.parse import parse_page
from focused.web.html.text_blocks import MAX_BLOCK_TEXT_CHARS, text_blocks
from focused.web.page import Failed, Fetched


def blocks(html: str, kind: str = "text/html; charset=utf-8") -> tuple[str, ...]:
    body = html.encode("utf-8", "replace")
    return text_blocks(Fetched("https://example.org/", 200, {"content-type": kind}, body))


def test_each_block_element_is_a_block():
    html = "<h1>Whales</h1><p>Large <b>mam</b>mals\n of the sea<ul><li>blue<li>grey</ul>a<br>b"
    assert blocks(html) == ("Whales", "Large mammals of the sea", "blue", "grey", "a", "b")


@pytest.mark.parametrize(
    "element",
    [
        "<nav>Home</nav>",
        "<header><div>Home</div></header>",
        "<div class='main-menu'><p>Home</p></div>",
        "<div role=Navigation>Home</div>",
        "<footer>Home</footer>",
        "<ul class='wide breadcrumbs'><li>Home</ul>",
        "<div id=main-nav>Home</div>",
        "<div class=site_footer>Home</div>",
        "<div class=Sidebar>Home</div>",
        "<div class='box ad'>Buy</div>",
        "<div id='cookie-consent'>We use cookies</div>",
        "<ins class='adsbygoogle'>Buy</ins>",
        "<script>var home</script><style>p {}</style><!-- home -->",
    ],
)
def test_navigation_advertising_and_scripts_are_left_out(element):
    html = f"<p>Whales are large mammals</p>{element}<p>of the sea</p>"
    assert blocks(html) == ("Whales are large mammals", "of the sea")


@pytest.mark.parametrize(
    "element",
    [
        "<aside>A footnote</aside>",
        "<div class='header-text load'>A footnote</div>",
        "<div class=nav-content>A footnote</div>",
        "<div class=wy-grid-for-nav>A footnote</div>",
        "<div class='content with-sidebar'>A footnote</div>",
        "<div class=toctree-wrapper>A footnote</div>",
        "<div class=piano role=main>A footnote</div>",
    ],
)
def test_other_blocks_are_kept(element):
    assert "A footnote" in blocks(f"<p>Whales are large mammals</p>{element}")


def test_a_page_of_navigation_is_kept_whole():
    html = f"<nav>{'<a href=x>all the whales</a><br>' * 20}</nav><p>Whales</p>"
    assert len(blocks(html)) == 21


def test_a_text_file_has_its_lines_as_blocks():
    assert blocks("one\n\n two  three\n", "text/plain") == ("one", "two three")


def test_the_text_is_bounded():
    long = blocks("<p>whale</p>" * 100_000)
    assert sum(map(len, long)) <= MAX_BLOCK_TEXT_CHARS


@given(st.text("<>/ abdivp=\"'\n!-", max_size=80))
def test_any_markup_gives_blocks_within_the_pages_text(html):
    found = blocks(html)
    fetched = Fetched("https://e.org/", 200, {"content-type": "text/html"}, html.encode())
    page = parse_page(fetched)
    if not isinstance(page, Failed):
        letters = {char for block in found for char in block}
        assert letters <= set(page.text) | {" "}
