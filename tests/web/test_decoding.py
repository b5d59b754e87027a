"""The encoding of a page: declared by header or markup, or detected from its bytes."""

import endec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.web.decoding import (
    decode,
    encoding_in_content_type,
    encoding_in_document,
    encoding_of_label,
    sniff_media_type,
)

CYRILLIC = "Все люди рождаются свободными и равными в своем достоинстве и правах."


def declared(html: str | bytes, *, is_html: bool = True) -> str | None:
    body = html.encode() if isinstance(html, str) else html
    return encoding_in_document(body, is_html=is_html)


# Labels


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("UTF8", "utf-8"),
        ("\tlatin1\n", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("logical", "iso-8859-8-i"),
        ("visual", "iso-8859-8"),
        ("mac", "macintosh"),
        ("x-mac-ukrainian", "x-mac-cyrillic"),
        ("x-sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("gb2312", "gbk"),
        ("big5-hkscs", "big5"),
        ("hz-gb-2312", "replacement"),
        ("iso-2022-kr", "replacement"),
        ("utf-16", "utf-16le"),
        ("utf-7", None),
        ("unicode-1-1-utf-7", None),
        ("unicode_escape", None),
        ("base64", None),
        ("utf_8", None),
        ("", None),
        ("\N{KELVIN SIGN}OI8-R", None),
    ],
)
def test_labels_are_those_of_the_encoding_standard(label, encoding):
    assert encoding_of_label(label) == encoding


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        ("text/html; charset=koi8-r", "koi8-r"),
        ('text/html;CHARSET="koi8-r" ; x=y', "koi8-r"),
        ("text/html; x-charset=koi8-u; charset=koi8-r", "koi8-r"),
        ("text/html; charset=no-such, text/html; charset=koi8-r", "koi8-r"),
        ("text/html; charset='koi8-r'", "koi8-r"),
        ('text/html; charset="koi8-r', "koi8-r"),
        ('text/html; charset="koi8-r; x=y', "koi8-r"),
        ("text/html; charset=", None),
        ("text/html; xcharset=koi8-r", None),
        ("text/html", None),
    ],
)
def test_a_header_names_an_encoding(value, encoding):
    assert encoding_in_content_type(value) == encoding


# Declarations in HTML


@pytest.mark.parametrize(
    "html",
    [
        "<meta charset=koi8-r>",
        "<META CHARSET='KOI8-R'>",
        '<meta charset = "\nkoi8-r\n" >',
        "<meta/charset=koi8-r/>".replace("r/>", "r >"),
        "<meta a b=c d='>' charset=koi8-r>",
        "<meta <meta charset='koi8-r'>",
        "<meta charset=koi8-r charset=utf-8>",
        "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>",
        "<meta content='charset charset = \"koi8-r\"; x' http-equiv=content-type>",
        "<meta http-equiv=content-type content=\"charset='koi8-r'\">",
        "<meta http-equiv=refresh content='charset=utf-8' charset=koi8-r>",
        "<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
        "<!--><meta charset=koi8-r>-->",
        "<!--- > <meta charset=utf-8> --><meta charset=koi8-r>",
        "<p title='<meta charset=utf-8>'><meta charset=koi8-r>",
        '<p title="x>y <meta charset=utf-8>" lang=ru><meta charset=koi8-r>',
        "</p title='<meta charset=utf-8>'><meta charset=koi8-r>",
        "<? <meta charset=utf-8><meta charset=koi8-r>",
        "</ <meta charset=utf-8><meta charset=koi8-r>",
        "<script>x = '<meta charset=utf-8>'</script><meta charset=koi8-r>",
        "<STYLE a=b><meta charset=utf-8></style><meta charset=koi8-r>",
        "<title><meta charset=utf-8></titles></title ><meta charset=koi8-r>",
        "<meta charset=no-such><meta charset=koi8-r>",
        "<meta charset><meta charset=''><meta charset=koi8-r>",
        "<metacharset=utf-8><meta charset=koi8-r>",
        "<meta name=x content='text/html; charset=utf-8'><meta charset=koi8-r>",
        "<meta http-equiv='content-type ' content='charset=utf-8'><meta charset=koi8-r>",
        "<meta http-equiv=content-type content='charset=\"utf-8'><meta charset=koi8-r>",
        "1 < 2 <meta charset=koi8-r>",
        f"<!--{'x' * 9_000}--><meta charset=koi8-r>",
        "<meta charset=koi8-r><?xml encoding='utf-8'?>",
    ],
)
def test_the_first_usable_meta_element_of_the_markup_declares_the_encoding(html):
    assert declared(html) == "koi8-r"


@pytest.mark.parametrize(
    "html",
    [
        "<meta charset=koi8-r",
        "<meta charset='koi8-r>",
        "<p title='><meta charset=koi8-r>",
        "<meta charset='koi8-r><p>'</p>",
        "<meta x=' charset=koi8-r>",
        "<meta charset = >koi8-r",
        "<meta charset=koi8-r'>",
        "<!-- <meta charset=koi8-r>",
        "<script><meta charset=koi8-r>",
        "<meta content='charset=koi8-r'>",
        "<meta content='charset koi8-r' http-equiv=content-type>",
        "&lt;meta charset=koi8-r>",
        f"<!--{'x' * 20_000}--><meta charset=koi8-r>",
    ],
)
def test_what_is_not_a_meta_element_declares_nothing(html):
    assert declared(html) is None


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("utf-16", "utf-8"),
        ("utf-16be", "utf-8"),
        ("x-user-defined", "windows-1252"),
        ("x-mac-cyrillic", "x-mac-cyrillic"),
    ],
)
def test_a_meta_element_cannot_be_in_an_encoding_that_hides_it(label, encoding):
    assert declared(f"<meta charset={label}>") == encoding


# XML declarations


@pytest.mark.parametrize(
    ("xml", "encoding"),
    [
        ('<?xml version="1.0" encoding="koi8-r"?>', "koi8-r"),
        ("<?xml version='1.0' encoding = 'KOI8-R' standalone='yes'?>", "koi8-r"),
        ("<?xml encoding='utf-16'?>", "utf-8"),
        (" <?xml encoding='koi8-r'?>", None),
        ("<?xml version='1.0'?> encoding='koi8-r'", None),
        ("<?xml encoding=koi8-r?>", None),
        ("<?xml encoding='koi8 r'?>", None),
        ("<?XML encoding='koi8-r'?>", None),
        ("<?xml encoding='koi8-r'", None),
    ],
)
@pytest.mark.parametrize("is_html", [True, False])
def test_an_xml_declaration_names_an_encoding(xml, encoding, is_html):
    assert declared(xml, is_html=is_html) == encoding


def test_in_html_the_meta_element_goes_first_and_in_xml_the_declaration():
    both = "<?xml version='1.0' encoding='koi8-r'?><html><meta charset=windows-1251>"
    assert declared(both) == "windows-1251"
    assert declared(both, is_html=False) == "koi8-r"


@pytest.mark.parametrize("codec", ["utf-16le", "utf-16be"])
def test_an_xml_declaration_in_utf_16_needs_no_byte_order_mark(codec):
    body = "<?xml version='1.0'?><p>Привет</p>".encode(codec)
    text, encoding = decode(body, {})
    assert (text[-10:], encoding) == ("Привет</p>", codec)
    assert sniff_media_type(body) == "application/xml"


# Order of what is believed


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=koi8-u", "utf-8"),
        (b"\xff\xfea\x00", "text/html; charset=koi8-u", "utf-16le"),
        (b"<meta charset=koi8-r>", "text/html; charset=koi8-u", "koi8-u"),
        (b"<meta charset=koi8-r>", "text/html; charset=no-such", "koi8-r"),
        (b"<meta charset=koi8-r>", "", "koi8-r"),
        (b"no-thing", "text/html", "utf-8"),
    ],
)
def test_mark_then_header_then_markup_tell_the_encoding(body, content_type, encoding):
    assert decode(body, {"content-type": content_type})[1] == encoding


# Decoders


@pytest.mark.parametrize(
    ("label", "body", "text"),
    [
        ("windows-1252", b"\x80\x81\x9d\xff", "€\x81\x9dÿ"),
        ("iso-8859-1", b"\x93quoted\x94", "“quoted”"),
        ("windows-1255", b"\xca\xe0", "\u05baא"),
        ("koi8-u", b"\xae\xbe\xa4", "ўЎє"),
        ("macintosh", b"\xdb\x8a", "€ä"),
        ("x-mac-cyrillic", b"\x80\xa2\xff", "АҐ€"),
        ("iso-8859-8-i", b"\xe0\xfd", "א\u200e"),
        ("windows-874", b"\x80\xa1\x81", "€ก\x81"),
        ("shift_jis", b"\x87\x40\x81\x60\x5c", "①～\\"),
        ("euc-jp", b"\xad\xa1\xa1\xc1\xf9\xa1", "①～纊"),
        ("iso-2022-jp", b"\x1b$B-!\x1b(B", "①"),
        ("euc-kr", b"\x8c\x63\xb0\xa1", "똠가"),
        ("gb2312", b"\x80\xe9\x46", "€镕"),
        ("gb18030", b"\x81\x30\x81\x30", "\x80"),
        ("big5", b"\x87\x65\xa7\x41", "囻你"),
        ("replacement", b"anything", "\N{REPLACEMENT CHARACTER}"),
        ("utf-8", b"a\xe2\x82b", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_bytes_are_read_as_the_encoding_standard_has_it(label, body, text):
    assert decode(body, {"content-type": f"text/html; charset={label}"})[0] == text


# Documents that declare nothing

KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."
JAPANESE = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
NEWS_KOREAN = "최신 소식"
NEWS_RUSSIAN = "Новости"
NEWS_TAIWANESE = "最新消息"
CHINESE = "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。"
TAIWANESE = "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。"
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια."
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם."
ARABIC = "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق."
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
POLISH = "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw."
TURKISH = "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar."
UKRAINIAN = "Всі люди народжуються вільними і рівними у своїй гідності та правах."
FRENCH = "Tous les êtres humains naissent libres et égaux en dignité et en droits."


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("euc-kr", KOREAN),
        ("euc-kr", NEWS_KOREAN),
        ("koi8-r", NEWS_RUSSIAN),
        ("big5", NEWS_TAIWANESE),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("iso-2022-jp", JAPANESE),
        ("gbk", CHINESE),
        ("big5", TAIWANESE),
        ("windows-1251", CYRILLIC),
        ("koi8-r", CYRILLIC),
        ("koi8-u", UKRAINIAN),
        ("iso-8859-5", CYRILLIC),
        ("ibm866", CYRILLIC),
        ("windows-1253", GREEK),
        ("windows-1255", HEBREW),
        ("windows-1256", ARABIC),
        ("windows-874", THAI),
        ("windows-1250", POLISH),
        ("iso-8859-2", POLISH),
        ("windows-1254", TURKISH),
        ("windows-1252", FRENCH),
    ],
)
@pytest.mark.parametrize("before", ["", "<script>" + "a = 1; " * 4_000 + "</script>"])
def test_an_encoding_that_nobody_declares_is_found(encoding, text, before):
    html = f"<html><title>{text[:30]}</title>{before}<h1>{text[:40]}</h1><p class=x>{text}</p>"
    assert decode(endec.encode(html, encoding), {})[0] == html


@pytest.mark.parametrize(
    "text", ["It’s a test", "© 2020 Example", "price: £20 or €30", "20 °C ± 5 µm", "naïve", "½ cup"]
)
def test_a_few_letters_beyond_ascii_are_windows_1252(text):
    html = f"<p>Words that are plain English, among them {text}, and then some more words.</p>"
    assert decode(html.encode("cp1252"), {})[0] == html


def test_utf_8_that_was_cut_or_has_a_stray_byte_is_still_utf_8():
    body = CYRILLIC.encode()
    assert decode(body + b"\xd0", {}) == (CYRILLIC + "\N{REPLACEMENT CHARACTER}", "utf-8")
    assert decode(b"\xe9 " + body, {}) == ("\N{REPLACEMENT CHARACTER} " + CYRILLIC, "utf-8")


@given(st.binary(max_size=300), st.text(max_size=40), st.sampled_from(["<meta ", "<?xml ", ""]))
def test_any_bytes_are_text_in_a_known_encoding(body, label, start):
    headers = {"content-type": f"text/html; charset={label}"}
    encoding = decode(start.encode() + b"charset=" + body, headers)[1]
    assert encoding_of_label(encoding) == encoding
