"""A spider's own requests: stored in the frontier and restored with their callbacks.

The payload of the frontier's link is the request in Scrapy's serialised form. Callbacks that are
not methods of the spider are kept in memory, and such requests are lost with the process.

Values of ``meta`` and ``cb_kwargs`` are JSON, with their types. Tuples, sets, bytes and
dictionaries with other keys than text become an object with one key, the type's name, such as
``{"focused.tuple": [1, 2]}``. Deserialising runs no code that the text names: objects are created
without ``__init__``, only from imported classes that consist of fields.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import scrapy
from scrapy import Item, Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.request import fingerprint, request_from_dict

from focused.crawl.steps import SettledFetch
from focused.durations import Clock
from focused.errors import ConfigurationError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.outcomes import UnstorableValueError
from focused.scrapy_addon.request_state import META_KEY, state_of
from focused.web.urls import normalize_url

_TAG = "focused."
_OBJECT = _TAG + "object"
_ENUM = _TAG + "enum"
_DICT = _TAG + "dict"
_PLAIN = (type(None), bool, int, float, str)


def serialize_values(values: dict[str, Any]) -> str:
    """Serialise values by name. Raises UnstorableValueError for the first that cannot be."""
    stored = {}
    for name, value in values.items():
        try:
            stored[name] = _encode(value, name)
        except RecursionError:
            raise UnstorableValueError(f"{name} contains itself, or is too deep") from None
    return json.dumps(stored)


def deserialize_values(text: str) -> dict[str, Any]:
    """Return what :func:`serialize_values` stored; raises ValueError for other text."""
    values = json.loads(text)
    return {name: _decode(value) for name, value in values.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class _Codec:
    """Converts values of exactly one type to simpler data and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _zone_key(zone: ZoneInfo) -> str:
    if zone.key is None:
        raise TypeError("a time zone without a name")
    return zone.key


_CODECS: dict[type, _Codec] = {
    tuple: _Codec(list, tuple),
    set: _Codec(list, set),
    frozenset: _Codec(list, frozenset),
    deque: _Codec(lambda v: [list(v), v.maxlen], lambda v: deque(*v)),
    OrderedDict: _Codec(lambda v: [list(pair) for pair in v.items()], OrderedDict),
    Counter: _Codec(dict, Counter),
    bytes: _Codec(lambda v: v.decode("latin-1"), lambda v: v.encode("latin-1")),
    bytearray: _Codec(bytes, bytearray),
    complex: _Codec(lambda v: [v.real, v.imag], lambda v: complex(*v)),
    range: _Codec(lambda v: [v.start, v.stop, v.step], lambda v: range(*v)),
    Decimal: _Codec(str, Decimal),
    Fraction: _Codec(str, Fraction),
    UUID: _Codec(str, UUID),
    PosixPath: _Codec(str, Path),
    PurePosixPath: _Codec(str, PurePosixPath),
    date: _Codec(date.isoformat, date.fromisoformat),
    datetime: _Codec(
        lambda v: [v.replace(tzinfo=None).isoformat(), v.fold, v.tzinfo],
        lambda v: datetime.fromisoformat(v[0]).replace(fold=v[1], tzinfo=v[2]),
    ),
    time: _Codec(
        lambda v: [v.replace(tzinfo=None).isoformat(), v.fold, v.tzinfo],
        lambda v: time.fromisoformat(v[0]).replace(fold=v[1], tzinfo=v[2]),
    ),
    timedelta: _Codec(lambda v: [v.days, v.seconds, v.microseconds], lambda v: timedelta(*v)),
    timezone: _Codec(
        lambda v: [v.utcoffset(None), v.tzname(None)],
        lambda v: timezone(*v) if v[0] else UTC,
    ),
    ZoneInfo: _Codec(_zone_key, ZoneInfo),
}
_BY_TAG = {_TAG + kind.__name__: codec for kind, codec in _CODECS.items()}


def _encode(value: Any, place: str) -> Any:
    """Return JSON data for the value at ``place``, such as ``meta['a'][1]``."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_encode(each, f"{place}[{n}]") for n, each in enumerate(value)]
    if kind is dict:
        return _encode_dict(value, place)
    codec = _CODECS.get(kind)
    if codec is not None:
        try:
            return {_TAG + kind.__name__: _encode(codec.encode(value), place)}
        except TypeError as error:
            raise UnstorableValueError(f"{place} holds {error}") from None
    if isinstance(value, Enum):
        return {_ENUM: [_class_path(kind, place), value.name]}
    if isinstance(value, str):  # such as lxml's: CrawlSpider puts a link's text into meta
        return str.__str__(value)
    fields = _fields_of(value)
    if fields is None:
        raise UnstorableValueError(f"{place} is of the type {kind.__module__}.{kind.__qualname__}")
    stored = [[name, _encode(each, f"{place}.{name}")] for name, each in fields.items()]
    return {_OBJECT: [_class_path(kind, place), stored]}


def _encode_dict(value: dict[Any, Any], place: str) -> Any:
    if all(type(key) is str and not key.startswith(_TAG) for key in value):
        return {key: _encode(each, f"{place}[{key!r}]") for key, each in value.items()}
    pairs = [
        [_encode(key, f"a key of {place}"), _encode(each, f"{place}[{key!r}]")]
        for key, each in value.items()
    ]
    return {_DICT: pairs}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith(_TAG):
        return {key: _decode(each) for key, each in value.items()}
    stored = value[tag]
    if tag == _DICT:
        return {_decode(key): _decode(each) for key, each in stored}
    if tag == _ENUM:
        path, name = stored
        kind = imported_class(path)
        if not issubclass(kind, Enum):
            raise ValueError(f"{path} is not an enumeration")
        return kind[name]
    if tag == _OBJECT:
        path, fields = stored
        return _make_object(imported_class(path), {name: _decode(each) for name, each in fields})
    if tag not in _BY_TAG:
        raise ValueError(f"unknown type {tag!r}")
    return _BY_TAG[tag].decode(_decode(stored))


def _fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a Scrapy item, dataclass, attrs object or named tuple; else None."""
    kind = type(value)
    if isinstance(value, Item):
        return dict(value)
    names = _field_names(kind)
    if names is None:
        return None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _field_names(kind: type) -> list[str] | None:
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    attrs = getattr(kind, "__attrs_attrs__", None)
    if attrs is not None:
        return [attribute.name for attribute in attrs]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return list(kind._fields)
    return None


def _make_object(kind: type, fields: dict[str, Any]) -> Any:
    """Create an object from fields, without ``__init__`` unless it is an item."""
    if issubclass(kind, Item):
        return kind(fields)
    if _field_names(kind) is None:
        raise ValueError(f"{kind.__qualname__} is not a class of fields")
    if issubclass(kind, tuple):
        return tuple.__new__(kind, fields.values())
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _class_path(kind: type, place: str) -> str:
    path = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = imported_class(path)
    except ValueError:
        found = None
    if found is not kind:
        raise UnstorableValueError(
            f"{place} is of the class {kind.__qualname__}, which no module of {kind.__module__!r} "
            "has by that name"
        )
    return path


def imported_class(path: str) -> type:
    """Return the class at ``module:name`` if the module is imported; raises ValueError."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise ValueError(f"no class {path} is imported")
    return found


logger = logging.getLogger(__name__)

_IN_MEMORY = "in_memory"
"""Key of a stored value: the process that has the callbacks in memory, and their index."""

_NOT_STORED = frozenset({META_KEY, "download_slot", "download_latency"})
_OF_BODY = [f"Content-{each}" for each in ("Type", "Length", "Encoding", "Language", "Location")]
Callbacks = tuple[Callable[..., Any] | None, Callable[..., Any] | None]


class SpiderRequests:
    """Converts between a spider's requests and frontier links."""

    def __init__(self, slot: CrawlSlot, clock: Clock, spider: scrapy.Spider | None) -> None:
        self._slot = slot
        self._clock = clock
        self._process = uuid4().hex
        self._in_memory: list[Callbacks] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._unfiltered = 0
        self._has_uncommitted = False
        self.spider = spider

    def enqueue(self, request: Request) -> bool:
        """Queue the request; return False if it is a duplicate.

        Raises IgnoreRequest if it is refused, and UnstorableValueError if it cannot be stored.
        """
        url = normalize_url(request.url)
        if url is None:
            raise IgnoreRequest(
                f"{request.url[:200]}: not an http or https URL that can be crawled"
            )
        state = state_of(request)
        parent = state.found_on
        crawl = self._slot.crawl
        refusal = crawl.enqueuer.refusal_reason(url, parent)
        if refusal is not None:
            raise IgnoreRequest(f"{url} was refused: {refusal}")
        self._has_uncommitted = True
        return crawl.enqueue_url(
            url,
            _default_score(parent),
            self._clock(),
            key=self._key(request, url),
            parent=parent,
            found=state.found_as,
            payload=self._payload(request),
        )

    def commit(self, now: float) -> None:
        """Commit what was queued since the last call, or a kill while hosts wait loses it."""
        if self._has_uncommitted:
            self._has_uncommitted = False
            self._slot.crawl.commit(now)

    def restore(self, link: QueuedLink) -> Request | None:
        """Return the spider's request, with the link's current URL.

        None if its callbacks were in the memory of another process. Raises ConfigurationError if
        the spider or project lacks what it needs.
        """
        try:
            values = deserialize_values(link.payload or "{}")
            in_memory = values.pop(_IN_MEMORY, None)
            if "_class" in values:
                values["_class"] = _request_class(values["_class"])
            request = redirected(request_from_dict(values, spider=self.spider), link.url)
        except ValueError as error:
            raise ConfigurationError(
                f"the request for {link.url} was stored by another spider, or by an earlier state "
                f"of this one: {error}. Give the spider what it needs, or choose another folder"
            ) from error
        if in_memory is None:
            return request
        process, number = in_memory
        if process != self._process:
            return None
        request.callback, request.errback = self._in_memory[number]
        return request

    def has_errback(self, payload: str) -> bool:
        """Whether the stored request has an errback."""
        try:
            values = deserialize_values(payload)
        except ValueError:  # restoring it will report the error
            return True
        process, number = values.get(_IN_MEMORY) or ("", 0)
        if process == self._process:
            return self._in_memory[number][1] is not None
        return values.get("errback") is not None

    def _key(self, request: Request, url: str) -> bytes:
        if request.dont_filter:
            self._unfiltered += 1
            return link_key(f"{url} unfiltered {self._clock()!r} {self._unfiltered}")
        if request.method == "GET" and not request.body:
            return link_key(url)
        return link_key(f"{url} {fingerprint(request).hex()}")

    def _payload(self, request: Request) -> str:
        try:
            values = request.to_dict(spider=self.spider)
        except ValueError:  # a callback is not a method of the spider
            values = request.replace(callback=None, errback=None).to_dict()
            values[_IN_MEMORY] = [self._process, self._keep_in_memory(request)]
        values["meta"] = _own_meta(request.meta)
        return serialize_values(values)

    def _keep_in_memory(self, request: Request) -> int:
        if not self._in_memory:
            logger.warning(
                "%s has a callback that is not a method of the spider. Such requests work, but are "
                "kept in memory and lost if the crawl is stopped",
                request,
            )
        names = (id(request.callback), id(request.errback))
        number = self._numbers.setdefault(names, len(self._in_memory))
        if number == len(self._in_memory):
            self._in_memory.append((request.callback, request.errback))
        return number


def becomes_get(request: Request, status: int) -> bool:
    """Whether a redirect of the status is followed by GET, as in Scrapy."""
    if status == 303:
        return request.method not in ("GET", "HEAD")
    return status in (301, 302) and request.method == "POST"


def redirected(request: Request, url: str, status: int = 0) -> Request:
    """Return the request for the URL that it was redirected to.

    As in Scrapy, another origin does not get its credentials.
    """
    source, target = urlsplit(normalize_url(request.url) or ""), urlsplit(url)
    headers, cookies = request.headers.copy(), request.cookies
    if becomes_get(request, status):
        for name in _OF_BODY:
            headers.pop(name, None)
        request = request.replace(method="GET", body=b"")
    if source[:2] != target[:2]:
        headers.pop("Authorization", None)
    if (source.scheme, target.scheme) == ("https", "http"):  # anybody could read it
        headers.pop("Referer", None)
    if source.hostname != target.hostname or target.scheme not in (source.scheme, "https"):
        headers.pop("Cookie", None)
        cookies = {}
    return request.replace(url=url, headers=headers, cookies=cookies)


def _request_class(path: str) -> str:
    """Check that the path is an imported request class; raises ValueError."""
    module, _, name = path.rpartition(".")
    if not issubclass(imported_class(f"{module}:{name}"), Request):
        raise ValueError(f"{path} is not a request class")
    return path


def _default_score(parent: SettledFetch | None) -> float:
    """Return 1 for a seed; the page's relevance for a URL that is not one of its links."""
    if parent is None or parent.classification is None:
        return 1.0
    return parent.classification.guiding_relevance


def _own_meta(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in _NOT_STORED}
