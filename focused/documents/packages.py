"""Read ZIP packages and XML within limits: no bombs, no entities, no network."""

from __future__ import annotations

import zipfile
import zlib
from io import BytesIO

from lxml import etree

from focused.documents.convert import DocumentError, is_ole
from focused.web.page import FailureKind

MAX_UNPACKED_BYTES = 50_000_000
"""Bytes that the read parts of a package may unpack to, together."""
MAX_ENTRIES = 20_000

_MAX_DIRECTORY_BYTES = 4_000_000
_ENCRYPTED_FLAG = 1
# zipfile unpacks a whole block of the others before it returns the first bytes of it. Office files,
# OpenDocument and EPUB have these two alone.
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_END_RECORD = b"PK\x05\x06"
_END_RECORD_BYTES = 22
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_ZIP64_RECORD_BYTES = 56


class Package:
    """The parts of a ZIP package. Raises DocumentError for packages that cannot be read."""

    def __init__(self, body: bytes) -> None:
        if is_ole(body):
            if _OLE_ENCRYPTED in body:
                raise DocumentError(FailureKind.ENCRYPTED, "the office file has a password")
            raise DocumentError(FailureKind.WRONG_TYPE, "an office file of a format before 2007")
        _check_directory(body)
        try:
            self._zip = zipfile.ZipFile(BytesIO(body))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise DocumentError(FailureKind.DAMAGED, f"no intact ZIP file: {error}") from error
        if len(self._zip.filelist) > MAX_ENTRIES:  # whatever number the file claims
            raise DocumentError(FailureKind.TOO_LARGE, f"more than {MAX_ENTRIES:,} entries")
        self._left = MAX_UNPACKED_BYTES
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Return a part; raises DocumentError if it is missing, damaged, encrypted or too large."""
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise DocumentError(FailureKind.DAMAGED, f"the part {name} is missing") from None
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise DocumentError(FailureKind.ENCRYPTED, f"the part {name} has a password")
        if info.compress_type not in _METHODS:
            method = info.compress_type
            raise DocumentError(FailureKind.DAMAGED, f"{name}: compression method {method}")
        try:
            with self._zip.open(info) as part:
                content = part.read(self._left + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise DocumentError(FailureKind.DAMAGED, f"{name}: {error}") from error
        self._left -= len(content)
        if self._left < 0:
            most = MAX_UNPACKED_BYTES // 1_000_000
            raise DocumentError(FailureKind.TOO_LARGE, f"unpacks to more than {most} MB")
        return content

    def read_xml(self, name: str) -> etree._Element:
        """Return the root element of a part."""
        return parse_xml(self.read(name), name)


def _check_directory(body: bytes) -> None:
    """Refuse packages with huge directories, which zipfile would read as a whole."""
    end = body.rfind(_END_RECORD)
    if end < 0 or len(body) - end < _END_RECORD_BYTES:
        raise DocumentError(FailureKind.DAMAGED, "the end of the ZIP file is missing")
    entries = int.from_bytes(body[end + 10 : end + 12], "little")
    directory_bytes = int.from_bytes(body[end + 12 : end + 16], "little")
    locator = end - _ZIP64_LOCATOR_BYTES
    record = locator - _ZIP64_RECORD_BYTES
    if record >= 0 and body.startswith(_ZIP64_LOCATOR, locator):
        entries = int.from_bytes(body[record + 32 : record + 40], "little")
        directory_bytes = int.from_bytes(body[record + 40 : record + 48], "little")
    if entries > MAX_ENTRIES or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise DocumentError(FailureKind.TOO_LARGE, f"more than {MAX_ENTRIES:,} entries")


def parse_xml(content: bytes, name: str) -> etree._Element:
    """Parse XML without entities, DTDs and network; raises DocumentError if it is damaged."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(FailureKind.DAMAGED, f"{name}: {error.msg}"[:300]) from error
    except ValueError as error:
        raise DocumentError(FailureKind.DAMAGED, f"{name}: {error}"[:300]) from error


def local_name(element: etree._Element) -> str:
    """Return an element's name without namespace, ``""`` for a comment or an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def texts_of(root: etree._Element, *names: str) -> list[str]:
    """Return the texts of the elements of the first of these local names that have any."""
    for name in names:
        if found := [text for each in root.iter(f"{{*}}{name}") if (text := _stripped(each))]:
            return found
    return []


def text_of(root: etree._Element, *names: str) -> str:
    """Return the first of :func:`texts_of`, ``""`` without any."""
    return next(iter(texts_of(root, *names)), "")


def _stripped(element: etree._Element) -> str:
    return (element.text or "").strip()
