"""The WHATWG URL standard, clause by clause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.urls import make_resolver, normalize_url

BASE = "http://base.example/d/e/f?q"

# 1.3 Percent-encoded bytes


@pytest.mark.parametrize(
    ("raw", "path_and_query"),
    [
        ("/\x00\x1f\x7f", "/%00%1F%7F"),  # the C0 control set
        ("/é\u2028😀", "/%C3%A9%E2%80%A8%F0%9F%98%80"),
        ('/a "<>`{}^b', "/a%20%22%3C%3E%60%7B%7D%5Eb"),  # the path set
        ("/!$%&'()*+,-./:;=@[]_|~", "/!$%&'()*+,-./:;=@[]_|~"),
        ("/?a \"<>'b", "/?a%20%22%3C%3E%27b"),  # the special-query set
        ("/?`{}^|~[]:/?@!$()*,;=+b", "/?`{}^|~[]:/?@!$()*,;=+b"),
        ("/%zz%4", "/%zz%4"),  # a stray "%" is no error
        ("/%E4?%E4", "/%E4?%E4"),  # escapes need not be UTF-8
    ],
)
def test_each_part_escapes_what_its_set_has(raw, path_and_query):
    assert normalize_url(f"http://h{raw}") == f"http://h{path_and_query}"


@pytest.mark.parametrize(
    ("charset", "letters", "escaped"),
    [
        ("windows-1251", "дом", "%E4%EE%EC"),
        ("windows-1252", "é€", "%E9%80"),
        ("windows-1252", "aд", "a%26%231076%3B"),  # what the charset lacks, as a reference
        ("shift_jis", "表", "%95\\"),  # a trail byte may be an ASCII character
        ("shift_jis", "①～¥−", "%87@%81`\\%81|"),
        ("euc-jp", "～－", "%A1%C1%A1%DD"),
        ("iso-2022-jp", "あ", "%1B$B$%22%1B(B"),
        ("iso-2022-jp", "\x0ea\x1b", "%26%2365533%3Ba%26%2365533%3B"),  # no shifts from outside
        ("gb18030", "中", "%D6%D0"),
        ("gb18030", "\ue5e5", "%26%2358853%3B"),
        ("utf-16le", "é", "%C3%A9"),  # the output encoding of UTF-16 is UTF-8
        ("utf-8", "é", "%C3%A9"),
    ],
)
def test_letters_of_a_query_are_escaped_in_the_pages_charset(charset, letters, escaped):
    link = f"/ö?q={letters}&x#é"
    assert make_resolver(BASE, charset)(link) == f"http://base.example/%C3%B6?q={escaped}&x"


# 3.5 Host parsing, 3.3 IDNA


@pytest.mark.parametrize(
    ("host", "normal"),
    [
        ("EXAMPLE.com", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("ex%61mple.com", "example.com"),
        ("%E2%98%95.example", "xn--53h.example"),
        ("☕.example", "xn--53h.example"),
        ("faß.de", "xn--fa-hia.de"),  # Transitional_Processing is false
        ("ＧＯ.com", "go.com"),
        ("h。x", "h.x"),
        ("a\u00adb.com", "ab.com"),
        ("xn--8i7caa.com", "xn--8i7caa.com"),  # ASCII is taken as it is, punycode or not
        ("xn--a.com", "xn--a.com"),
        ("ab--c.com", "ab--c.com"),  # CheckHyphens is false
        ("a_b.com", "a_b.com"),
        ("-a.com", "-a.com"),
        ("a-.com", "a-.com"),
    ],
)
def test_a_host_is_decoded_mapped_and_written_in_ascii(host, normal):
    assert normalize_url(f"http://{host}/") == f"http://{normal}/"


@pytest.mark.parametrize(
    "host",
    [
        *(f"a{char}b" for char in "\x00 <>^|\x7f\x01"),  # forbidden domain code points
        *(f"a%{ord(char):02X}b" for char in '\x00\t\n\r #/:<>?@[\\]^|%"'.replace('"', "")),
        "%",
        "%FF",
        "\u00ad",  # nothing is left after mapping
        "a\u200d.com",  # CheckJoiners
        "\u05d0a.com",  # CheckBidi
        "xn--\u00e9.com",
        "\ufffd.com",
    ],
)
def test_a_host_with_what_no_domain_has_is_refused(host):
    assert normalize_url(f"http://{host}/") is None


@pytest.mark.parametrize("host", ["a!b", "a$b", "a*b", "a~b.com", "a,b", "a..b", ".", "a" * 64])
def test_by_rule_3_a_name_that_has_no_address_is_refused(host):
    assert normalize_url(f"http://{host}/") is None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7F.1", "127.0.0.1"),
        ("0X7f000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0xc0.0250.01", "192.168.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("%31%32%37.1", "127.0.0.1"),
        ("0x", "0.0.0.0"),
        ("0", "0.0.0.0"),
        ("256", "0.0.1.0"),
        ("1.2.3.4.", "1.2.3.4"),
        ("255.16777215", "255.255.255.255"),
    ],
)
def test_a_host_that_ends_in_a_number_is_an_ipv4_address(host, address):
    assert normalize_url(f"http://{host}/") == f"http://{address}/"


@pytest.mark.parametrize(
    "host",
    ["256.1.1.1", "1.2.3.256", "4294967296", "1.2.3.4.5", "1.2.65536", "foo.0x4", "foo.09",
     "09", "0x1g.1", "1..2", "1.2.3.08", "a.0x"],
)  # fmt: skip
def test_a_number_that_is_not_an_ipv4_address_is_refused(host):
    assert normalize_url(f"http://{host}/") is None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("[::]", "[::]"),
        ("[1:0::]", "[1::]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[2001:DB8:0:0:1:0:0:1]", "[2001:db8::1:0:0:1]"),  # the first longest run
        ("[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"),
        ("[1:0:2:3:4:5:6:7]", "[1:0:2:3:4:5:6:7]"),  # one zero is no run
        ("[::127.0.0.1]", "[::7f00:1]"),
        ("[0000:0001::]", "[0:1::]"),
    ],
)
def test_an_ipv6_address_is_compressed(host, address):
    assert normalize_url(f"http://{host}:8080/") == f"http://{address}:8080/"


@pytest.mark.parametrize(
    "host",
    ["[]", "[:]", "[1", "[::1::]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[::1%eth0]", "[g::]",
     "[12345::]", "[::1.2.3]", "[::1.2.3.4.5]", "[::256.1.1.1]", "[::01.2.3.4]", "[::1]a",
     "[%3A%3A1]", "[1:2:3:4:5:6:7:1.2.3.4]"],
)  # fmt: skip
def test_what_is_not_an_ipv6_address_is_refused(host):
    assert normalize_url(f"http://{host}/") is None


# 4.4 URL parsing: around the URL


def test_controls_and_blanks_at_the_ends_are_trimmed():
    assert normalize_url("\x00\x1f  http://h/a b \x00 ") == "http://h/a%20b"


def test_tabs_and_line_ends_go_wherever_they_stand():
    assert normalize_url("h\tt\ntp\r:/\t/h\n/\ra\t?b\n") == "http://h/a?b"


def test_a_blank_before_the_fragment_is_the_paths():
    assert normalize_url("http://h/a #x") == "http://h/a%20"
    assert normalize_url("b #x", BASE) == "http://base.example/d/e/b%20"


def test_a_lone_surrogate_is_the_replacement_character():
    assert normalize_url("http://h/\ud800?\udfff") == "http://h/%EF%BF%BD?%EF%BF%BD"
    assert normalize_url("http://h/\ud83d\ude00") == normalize_url("http://h/😀")


# Scheme and slashes


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("HTTP://h", "http://h/"),
        ("https:h", "https://h/"),  # another scheme than the base's: an authority follows
        ("https:/h", "https://h/"),
        ("https:///h", "https://h/"),
        ("https:\\\\h\\a", "https://h/a"),
        ("http:a", "http://base.example/d/e/a"),  # the base's own scheme: relative
        ("http:/a", "http://base.example/a"),
        ("http:?x", "http://base.example/d/e/f?x"),
        ("http:", "http://base.example/d/e/f?q"),
        ("//h", "http://h/"),
        ("///h/x", "http://h/x"),
        ("/\\h/x", "http://h/x"),
        ("\\\\h\\x", "http://h/x"),
        ("\\x", "http://base.example/x"),
        ("a:b/../c".replace("a:", "./a:"), "http://base.example/d/e/c"),
        ("1:2", "http://base.example/d/e/1:2"),  # a scheme begins with a letter
        ("é:x", "http://base.example/d/e/%C3%A9:x"),
    ],
)
def test_a_special_scheme_and_its_slashes(raw, normal):
    assert normalize_url(raw, BASE) == normal


@pytest.mark.parametrize("raw", ["http:", "http://", "http:///", "http://?x", "http://#x", "//"])
def test_a_host_cannot_be_empty(raw):
    assert normalize_url(raw) is None


@pytest.mark.parametrize(
    "raw",
    ["mailto:a@b.c", "data:text/html,x", "javascript:x()", "file:///etc/passwd", "ftp://h/x",
     "ws://h/", "wss://h/", "blob:http://h/1", "about:blank", "urn:a:b", "view-source:http://h/",
     "httpx://h/", "gopher://h/"],
)  # fmt: skip
def test_by_rule_1_other_schemes_are_refused(raw):
    assert normalize_url(raw) is None
    assert normalize_url(raw, BASE) is None


# Authority


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("http://user@h/", "http://h/"),
        ("http://user:pass@h:8080/", "http://h:8080/"),
        ("http://a@b@h/", "http://h/"),  # the last "@" counts
        ("http://:@h/", "http://h/"),
        ("http://good.example@evil.example/", "http://evil.example/"),
        ("http://evil.example\\@good.example/", "http://evil.example/@good.example/"),
        ("http://evil.example#@good.example/", "http://evil.example/"),
        ("http://evil.example?@good.example/", "http://evil.example/?@good.example/"),
    ],
)
def test_by_rule_2_credentials_are_read_and_dropped(raw, normal):
    assert normalize_url(raw) == normal


@pytest.mark.parametrize("raw", ["http://user@/", "http://user:pass@", "http://@/", "http://@:80/"])
def test_credentials_without_a_host_are_refused(raw):
    assert normalize_url(raw) is None


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("http://h:80/", "http://h/"),
        ("http://h:0080/", "http://h/"),
        ("https://h:443/", "https://h/"),
        ("http://h:443/", "http://h:443/"),
        ("http://h:/", "http://h/"),
        ("http://h:0/", "http://h:0/"),
        ("http://h:65535/", "http://h:65535/"),
        ("http://h:8\t0/", "http://h/"),
    ],
)
def test_the_schemes_own_port_is_excluded(raw, normal):
    assert normalize_url(raw) == normal


@pytest.mark.parametrize("port", ["65536", "99999999999999999999", "-1", "8a", "80:80", "８０"])
def test_what_is_not_a_port_is_refused(port):
    assert normalize_url(f"http://h:{port}/") is None


# Path


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/../../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/a/%2e/b", "/a/b"),
        ("/a/%2E%2e/b", "/b"),
        ("/a/.%2e/b", "/b"),
        ("/a/...", "/a/..."),
        ("/a//../b", "/a/b"),  # an empty segment is a segment
        ("//a", "//a"),
        ("/a\\b\\..\\c", "/a/c"),
        ("/a/..%2fb", "/a/..%2Fb"),  # an escaped slash is none (capitals: rule 4)
        ("", "/"),
    ],
)
def test_dot_segments_are_resolved(raw, path):
    assert normalize_url(f"http://h{raw}") == f"http://h{path}"


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("", "/d/e/f?q"),
        ("#x", "/d/e/f?q"),
        ("g#x", "/d/e/g"),
        ("?", "/d/e/f"),  # by rule 5 no empty query
        ("?#", "/d/e/f"),
        ("?x", "/d/e/f?x"),
        ("g", "/d/e/g"),
        ("g/", "/d/e/g/"),
        ("/g", "/g"),
        ("/..", "/"),
        (".", "/d/e/"),
        ("./", "/d/e/"),
        ("../g", "/d/g"),
        ("./g", "/d/e/g"),
        ("..", "/d/"),
        ("../..", "/"),
        ("../../../g", "/g"),
        (";x", "/d/e/;x"),
        ("g?y/../x", "/d/e/g?y/../x"),  # a query has no segments
        ("g;x=1/../y", "/d/e/y"),
    ],
)
def test_a_reference_is_resolved_against_the_base(raw, normal):
    assert normalize_url(raw, BASE) == f"http://base.example{normal}"


# 6: idempotence, and no difference but by our rules


@given(st.text(alphabet="ab./\\?#:@%2eé \t[]0x;&=-", max_size=30))
def test_what_is_normal_stays_so_against_any_base(raw):
    once = normalize_url(raw, BASE)
    if once is not None:
        assert normalize_url(once) == normalize_url(once, "https://other.example/x/") == once
