"""An OAI-PMH repository of papers with lists in parts."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

BASE = "http://papers.test/oai"
_START = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    "<responseDate>2026-01-01T00:00:00Z</responseDate><request>http://elsewhere.test/</request>"
)


def oai(inside: str) -> str:
    return f"{_START}{inside}</OAI-PMH>"


def record(
    number: int, *identifiers: str, title: str = "", description: str = "", deleted: bool = False
) -> str:
    fields = {"title": [title], "description": [description], "identifier": identifiers}
    inside = "".join(
        f"<dc:{name}>{escape(value)}</dc:{name}>"
        for name, values in fields.items()
        for value in values
    )
    metadata = (
        '<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">{inside}</oai_dc:dc></metadata>'
    )
    return f"<record>{header(number, deleted=deleted)}{'' if deleted else metadata}</record>"


def header(number: int, *, deleted: bool = False) -> str:
    status = " status='deleted'" if deleted else ""
    return (
        f"<header{status}>"
        f"<identifier>oai:papers.test:{number}</identifier>"
        "<datestamp>2026-01-02</datestamp><setSpec>biology</setSpec></header>"
    )


class Repository:
    """``records`` by number, ``part`` of them in one response."""

    def __init__(self, records: Mapping[int, str], part: int = 10) -> None:
        self._records = dict(records)
        self._part = part
        self.requests: list[dict[str, str]] = []

    def answer(self, url: str) -> str:
        asked = dict(parse_qsl(urlsplit(url).query))
        self.requests.append(asked)
        verb = asked.get("verb", "")
        if verb == "Identify":
            return oai("<Identify><repositoryName>Papers</repositoryName></Identify>")
        if verb == "GetRecord":
            number = int(asked["identifier"].rpartition(":")[2])
            return oai(f"<GetRecord>{self._records[number]}</GetRecord>")
        if verb not in ("ListRecords", "ListIdentifiers"):
            return oai('<error code="badVerb">no such verb</error>')
        token = asked.get("resumptionToken", "")
        if not token and asked.get("metadataPrefix") != "oai_dc":
            return oai('<error code="badArgument">no prefix</error>')
        begin = int(token.partition("/")[2] or 0)
        numbers = list(self._records)[begin : begin + self._part]
        listed = "".join(
            self._records[each] if verb == "ListRecords" else header(each) for each in numbers
        )
        end = begin + self._part
        onward = f"oai_dc&!/{end}" if end < len(self._records) else ""
        listed += f"<resumptionToken cursor='{begin}'>{escape(onward)}</resumptionToken>"
        return oai(f"<{verb}>{listed}</{verb}>")
