"""Times of files in the directory listings of web servers."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.feeds import is_directory_listing, read_directory_listing
from focused.web.page import Fetched

URL = "http://files.example/pub/"
HTML = {"content-type": "text/html; charset=utf-8"}
APACHE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><head>
<title>Index of /pub</title></head><body><h1>Index of /pub</h1><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td></tr>
<tr><td><a href="old/">old/</a></td><td align="right">2023-11-12 08:00  </td></tr>
<tr><td><a href="report.pdf"><img src="/i.gif"></a></td><td><a href="report.pdf">report.pdf</a></td>
<td align="right">2023-11-14 22:13  </td><td align="right">1.2M</td></tr>
<tr><td><a href="a%20b.txt">a b.txt</a></td><td align="right">2001-01-31 00:05  </td></tr>
</table></body></html>"""
NGINX = """<html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1><hr><pre>
<a href="../">../</a>
<a href="old/">old/</a>                   12-Nov-2023 08:00       -
<a href="report.pdf">report.pdf</a>       14-Nov-2023 22:13   12345
<a href="a%20b.txt">a b.txt</a>           31-Jan-2001 00:05      12
</pre><hr></body></html>"""
LIGHTTPD = """<html><head><title>Index of /pub/</title></head><body><table><tbody>
<tr class="d"><td class="n"><a href="../">..</a>/</td><td class="m">&nbsp;</td></tr>
<tr class="d"><td class="n"><a href="old/">old</a>/</td><td class="m">2023-Nov-12 08:00:00</td></tr>
<tr><td class="n"><a href="report.pdf">report.pdf</a></td><td class="m">2023-Nov-14 22:13:20</td>
<tr><td class="n"><a href="a%20b.txt">a b.txt</a></td><td class="m">2001-Jan-31 00:05:09</td>
</tbody></table></body></html>"""


def page(html: str, url: str = URL) -> Fetched:
    return Fetched(url, 200, HTML, html.encode())


def files(html: str) -> dict[str, float | None]:
    return {each.target: each.changed_at for each in read_directory_listing(page(html))}


@pytest.mark.parametrize("html", [APACHE, NGINX, LIGHTTPD])
def test_files_have_the_time_of_their_last_modification(html):
    assert files(html) == {
        f"{URL}report.pdf": datetime(2023, 11, 14, 22, 13, tzinfo=UTC).timestamp(),
        f"{URL}a%20b.txt": datetime(2001, 1, 31, 0, 5, tzinfo=UTC).timestamp(),
    }


@pytest.mark.parametrize(
    ("html", "url"),
    [
        (NGINX.replace("Index of", "Files of"), URL),
        (NGINX, f"{URL}page.html"),
        (f"<p>{'text ' * 999}</p>{NGINX}", URL),
    ],
)
def test_other_pages_are_no_listings(html, url):
    assert not is_directory_listing(page(html, url))
    assert read_directory_listing(page(html, url)) == []


@pytest.mark.parametrize("time", ["2023-13-01 00:00", "31-Feb-2023 00:00", "14-Abc-2023 22:13"])
def test_a_time_that_does_not_exist_is_left_out(time):
    assert files(NGINX.replace("14-Nov-2023 22:13", time)).keys() == {f"{URL}a%20b.txt"}


def test_a_link_elsewhere_is_left_out():
    html = NGINX.replace('"report.pdf"', '"http://other.example/report.pdf"')
    assert files(html).keys() == {f"{URL}a%20b.txt"}


def test_the_number_of_entries_is_limited():
    assert len(read_directory_listing(page(NGINX), max_entries=1)) == 1


PIECES = [*NGINX.split(" "), 'href="', "14-Nov-2023 22:13", "2023-11-14 22:13", "0000-00-00 99:99"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=60).map(" ".join))
def test_any_listing_is_read(body):
    found = read_directory_listing(page(f"<title>Index of /</title>{body}"))
    assert all(each.target.startswith(URL) and each.changed_at is not None for each in found)
