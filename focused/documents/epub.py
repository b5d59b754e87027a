"""Convert EPUB: the documents of its spine, in order, as one page."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

from lxml import etree
from lxml.html import HtmlElement

from focused.documents.convert import DocumentError
from focused.documents.markup import DocumentMetadata, MarkupWriter, is_web_url
from focused.documents.packages import Package, text_of, texts_of
from focused.web.decoding import close_empty_elements, decode, limit_markup
from focused.web.html.main_text import parse_tree
from focused.web.page import FailureKind

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_TEXT_TYPES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_FONT_OBFUSCATION = re.compile(r"idpf\.org/2008/embedding|ns\.adobe\.com/pdf/enc#RC")
_DROPPED = etree.XPath("//script|//style|//meta|//base|//link|//iframe|//object|//embed|//form")


def convert_epub(body: bytes) -> bytes:
    """Return an EPUB file as HTML; raises DocumentError if it is damaged or encrypted.

    Links between its documents are dropped: they lead to no page of the Web.
    """
    package = Package(body)
    if _ENCRYPTION in package.names:
        _check_encryption(package.read_xml(_ENCRYPTION))
    rootfile = package.read_xml(_CONTAINER).find(".//{*}rootfile")
    path = "" if rootfile is None else rootfile.get("full-path", "")
    if path not in package.names:
        raise DocumentError(FailureKind.DAMAGED, "the package document is missing")
    root = package.read_xml(path)
    writer = MarkupWriter()
    for name in _spine(root, posixpath.dirname(path)):
        if writer.is_full:
            break
        if name in package.names:
            writer.raw(_body_of(package.read(name)))
    return writer.html(_metadata(root))


def _check_encryption(root: etree._Element) -> None:
    for method in root.iter("{*}EncryptionMethod"):
        if not _FONT_OBFUSCATION.search(method.get("Algorithm", "")):
            raise DocumentError(FailureKind.ENCRYPTED, "the EPUB is encrypted")


def _spine(root: etree._Element, folder: str) -> list[str]:
    """Return the paths of the documents in reading order, each once."""
    items = {
        item.get("id"): item.get("href", "")
        for item in root.iter("{*}item")
        if item.get("media-type") in _TEXT_TYPES
    }
    listed = [items.get(each.get("idref")) for each in root.iter("{*}itemref")]
    paths = (posixpath.normpath(posixpath.join(folder, unquote(href))) for href in listed if href)
    return list(dict.fromkeys(paths))


def _body_of(content: bytes) -> str:
    """Return the body of an XHTML document, with links to the Web only."""
    text, _ = decode(content, {"content-type": "application/xhtml+xml"})
    tree = parse_tree(limit_markup(close_empty_elements(text)))
    body = None if tree is None else tree.find("body")
    if tree is None or body is None:
        return ""
    for dropped in _DROPPED(tree):
        if dropped.getparent() is not None:
            dropped.drop_tree()
    for link in tree.iter("a", "area"):
        if not is_web_url(link.get("href") or ""):
            link.attrib.pop("href", None)
    return "\n".join(_serialised(child) for child in body) or (body.text or "")


def _serialised(element: HtmlElement) -> str:
    return str(etree.tostring(element, encoding="unicode", method="html"))


def _metadata(root: etree._Element) -> DocumentMetadata:
    modified = (
        each.text or ""
        for each in root.iter("{*}meta")
        if each.get("property") == "dcterms:modified"
    )
    return DocumentMetadata(
        title=text_of(root, "title"),
        authors=texts_of(root, "creator"),
        published=text_of(root, "date"),
        modified=next(modified, ""),
        language=text_of(root, "language"),
        description=text_of(root, "description"),
        licence=text_of(root, "rights"),
    )
