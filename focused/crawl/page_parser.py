"""Parse and classify pages: everything that follows from response, topic and classifier alone.

Nothing here depends on the crawl's state, so a page may be parsed ahead of time and in another
process (:class:`ParsingHandler`).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import (
    HashedPageClassifier,
    SwappableClassifier,
    TopicClassifier,
)
from focused.crawl.crawl_stats import Clock, Stage
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.protocols import LinkScorer, UsesStaticFeatures
from focused.link_scoring.static_features import StaticLinkFeatures, compute_static_features
from focused.text.content_signatures import content_fingerprint
from focused.text.documents import HashedPage, hash_page
from focused.text.shingles import ShingleHashes, shingles
from focused.topic import Scope, Topic
from focused.web.decoding import is_feed, media_type_of
from focused.web.html.parse import needs_parser_process, parse_page
from focused.web.page import Classification, Failed, FailureKind, Fetched, Page
from focused.web.robots.robots_rules import RobotsFile, parse_robots_body, product_token
from focused.web.scope_filter import QueryParameterFilter
from focused.web.warc_records import WarcCapture, WarcRecordBuilder

if TYPE_CHECKING:
    from focused.crawl.crawl_state import CrawlState

MAX_SHINGLES = 1_152
"""The size of a sketch, plus as many shingles as a host's boilerplate may remove from it."""

UNCLASSIFIED = "\0unclassified"
"""The classifier name of a parsed page that is not classified yet."""

ParseFunction = Callable[[Fetched], Page | Failed]
PageAnalyser = Callable[[Page, Fetched], Any]
"""Returns what a feature finds in a page and its HTML: texts, numbers, lists, dictionaries."""
PageRater = Callable[[Page, Classification, TopicClassifier], Any]
"""Returns what a feature finds in a page by the topic's classifier, which may be swapped."""


class PageConverter(Protocol):
    """Converts responses of other formats into HTML. It is pure and picklable."""

    def format_of(self, fetched: Fetched) -> str | None:
        """Return the name of a response's format; None if this does not convert it."""

    def takes_type(self, media_type: str) -> bool | None:
        """Whether responses of a media type may be converted, whatever else is known of them.

        None if the media type does not tell.
        """

    def needs_process(self, fetched: Fetched) -> bool:
        """Whether conversion needs a process that can be killed."""

    def to_html(self, fetched: Fetched) -> Fetched | Failed:
        """Return the response with HTML as its body; Failed if that is impossible."""


class _NullClassifier:
    """Replaces a classifier that cannot be pickled."""

    threshold = 1.0

    def classify(self, page: Page) -> Classification:
        return Classification(0.0, on_topic=False, known=False)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.zeros(len(texts))


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A parsed and classified page.

    ``content`` is the page's fingerprint. ``shingles`` holds the smallest :data:`MAX_SHINGLES`
    shingle hashes, ascending, or None if the page is only compared exactly. ``words`` are hashed
    words, for classifiers that take them. ``static_features`` are link features from a parser
    process, for scorers that use them. ``record`` holds the WARC records, if there is a WARC.
    ``findings`` are what features found in the page, by name. ``seconds`` is the time by stage.
    """

    page: Page
    classification: Classification
    classifier: str
    content: bytes
    shingles: ShingleHashes | None
    words: HashedPage | None = None
    static_features: StaticLinkFeatures | None = None
    record: WarcCapture | None = None
    findings: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[Stage, float] = field(default_factory=dict)


_NEVER_PAGES = (
    *("audio/", "font/", "image/", "model/", "video/"),
    *("application/epub+zip", "application/pdf", "application/vnd.oasis.opendocument"),
    "application/vnd.openxmlformats",
)
"""Types that are no pages, unless a converter takes them."""


@dataclass(frozen=True, eq=False)
class PageParser:
    """Parses pages for one topic; picklable when its parse function and classifier are.

    ``classifier_name`` identifies the classifier within the crawl. ``record_builder`` None writes
    no WARC records; ``analysers`` and ``raters`` fill :attr:`ParsedPage.findings`.
    """

    scope: Scope
    classifier: TopicClassifier
    classifier_name: str
    parse: ParseFunction
    clock: Clock = float
    _: KW_ONLY
    uses_static_features: bool = False
    record_builder: WarcRecordBuilder | None = None
    analysers: Mapping[str, PageAnalyser] = field(default_factory=dict)
    raters: Mapping[str, PageRater] = field(default_factory=dict)
    converters: Sequence[PageConverter] = ()

    @cached_property
    def _hashed_classifier(self) -> HashedPageClassifier | None:
        found = self.classifier
        return found if isinstance(found, HashedPageClassifier) else None

    @cached_property
    def _dropped(self) -> QueryParameterFilter:
        return QueryParameterFilter(self.scope.drop_parameters, self.scope.keep_parameters)

    def without_classifier(self) -> PageParser:
        """Return a parser that leaves pages :data:`UNCLASSIFIED`."""
        return replace(
            self,
            classifier=_NullClassifier(),
            classifier_name=UNCLASSIFIED,
            uses_static_features=False,
            raters={},
        )

    def read(self, fetched: Fetched) -> ParsedPage | Failed:
        """Parse and classify a response; return Failed when it holds no page."""
        seconds: dict[Stage, float] = {}
        now = self.clock()

        def end_stage(stage: Stage) -> None:
            nonlocal now
            began, now = now, self.clock()
            seconds[stage] = seconds.get(stage, 0.0) + now - began

        html, format_name = self._to_html(fetched)
        if isinstance(html, Failed):
            return html
        page = self.parse(html)
        if isinstance(page, Failed):
            return page
        page = self._dropped.apply_to_page(
            replace(page, format=format_name) if format_name else page
        )
        end_stage(Stage.PARSING)
        words, classification = self._classify(page)
        findings = self.ratings(page, classification)
        end_stage(Stage.CLASSIFYING)
        content = content_fingerprint(page)
        hashes = shingles(page.text)[:MAX_SHINGLES] if self._is_sketched(classification) else None
        end_stage(Stage.DEDUPLICATING)
        record = None if self.record_builder is None else self.record_builder.capture(fetched)
        end_stage(Stage.ARCHIVING)
        findings |= {name: analyse(page, html) for name, analyse in self.analysers.items()}
        end_stage(Stage.PARSING)
        return ParsedPage(
            page,
            classification,
            self.classifier_name,
            content,
            hashes,
            words,
            record=record,
            findings=findings,
            seconds=seconds,
        )

    def read_all(self, answers: Sequence[Fetched]) -> Sequence[ParsedPage | Failed | None]:
        """Parse several responses.

        None stands for a page at which our own code raised; :meth:`read` raises the error again.
        """
        return list(map(self._read_or_none, answers))

    def _read_or_none(self, fetched: Fetched) -> ParsedPage | Failed | None:
        try:
            return self.read(fetched)
        except Exception:
            return None

    def ratings(self, page: Page, classification: Classification) -> dict[str, Any]:
        """Return what features find in a page by the classifier, by name."""
        return {
            name: rate(page, classification, self.classifier) for name, rate in self.raters.items()
        }

    def with_static_features(self, parsed: ParsedPage) -> ParsedPage:
        """Return a page with the static features of all its links, if the scorer uses them.

        For parser processes. The crawl's own process computes the features of only those links
        that it scores: it knows which are settled, and which wait with full evidence.
        """
        if not self.uses_static_features:
            return parsed
        began = self.clock()
        static_features = compute_static_features(self.classifier, parsed.page.links)
        seconds = {**parsed.seconds, Stage.SCORING: self.clock() - began}
        return replace(parsed, static_features=static_features, seconds=seconds)

    def _to_html(self, fetched: Fetched) -> tuple[Fetched | Failed, str]:
        """Return a response as HTML, and the format that it was converted from, ``""`` for HTML."""
        shown = fetched.as_shown()
        converter = converter_of(fetched, self.converters) if shown is fetched else None
        if converter is None:
            return shown, ""
        return converter.to_html(fetched), converter.format_of(fetched) or ""

    def _is_sketched(self, classification: Classification) -> bool:
        """Whether the page is compared with others that are nearly the same."""
        is_classified = self.classifier_name != UNCLASSIFIED
        return self.scope.near_duplicates and (classification.is_near_topic or not is_classified)

    def _classify(self, page: Page) -> tuple[HashedPage | None, Classification]:
        if self._hashed_classifier is None:
            return None, self.classifier.classify(page)
        words = hash_page(page)
        return words, self._hashed_classifier.classify_hashed(words)


def converter_of(fetched: Fetched, converters: Sequence[PageConverter]) -> PageConverter | None:
    """Return the first that converts a response, or None."""
    for each in converters:
        if each.format_of(fetched) is not None:
            return each
    return None


_PARSER_FAILURES = frozenset(
    {
        FailureKind.INTERNAL_ERROR,
        FailureKind.PARSE_TIMEOUT,
        FailureKind.PARSE_MEMORY,
        FailureKind.PARSE_CRASH,
    }
)
"""The parser could not tell whether such a page asks not to be archived."""

MAX_NESTED_FEEDS = 5  # an index, its sitemaps, and the redirects to them


class ResponseParser:
    """Parses the crawl's responses with its current classifier; has no side effects."""

    def __init__(
        self,
        topic: Topic,
        state: CrawlState,
        classifier: SwappableClassifier,
        scorer: LinkScorer,
        parse: ParseFunction | None,
    ) -> None:
        """``parse`` replaces the HTML parser."""
        self._scope = topic.scope
        self._archives_noindex = topic.politeness.noindex == "keep"
        self._classifier = classifier
        self._stages = state.stages
        self._parse = parse or partial(
            parse_page,
            max_links=topic.scope.max_links_per_page,
            robot=product_token(topic.politeness.user_agent),
        )
        self.analysers: dict[str, PageAnalyser] = {}
        """Those of the features that are on, by name."""
        self.raters: dict[str, PageRater] = {}
        """Likewise."""
        self.converters: list[PageConverter] = []
        """Likewise."""
        self._needs_static_features = isinstance(scorer, UsesStaticFeatures)
        self._archive = state.archive
        self._reader: PageParser | None = None

    def page_parser(self) -> PageParser:
        """Return the page parser with the current classifier."""
        classifier, reader, writer = self._classifier, self._reader, self._archive.record_builder
        if (
            reader is None
            or reader.classifier is not classifier.current
            or reader.record_builder != writer
        ):
            self._reader = reader = PageParser(
                self._scope,
                classifier.current,
                classifier.name,
                self._parse,
                self._stages.clock,
                uses_static_features=self._needs_static_features,
                record_builder=writer,
                analysers=self.analysers,
                raters=self.raters,
                converters=self.converters,
            )
        return reader

    def likeliest_category(self, page: Page) -> str:
        """Return the most likely category of a page by the current classifier, or ``""``."""
        return self._classifier.likeliest_category(page)

    def refuses_type(self, media_type: str) -> bool:
        """Whether a response of this media type is no page by the scope, whatever its body."""
        if media_type in self._scope.content_types:
            return False
        for each in self.converters:
            if (takes := each.takes_type(media_type)) is not None:
                return not takes
        return media_type.startswith(_NEVER_PAGES)

    def needs_process(self, fetched: Fetched) -> bool:
        """Whether parsing may take long enough to need a process that can be killed."""
        shown = fetched.as_shown()
        return any(each.needs_process(shown) for each in self.converters) or needs_parser_process(
            shown
        )

    def refusal(self, link: QueuedLink | None, fetched: Fetched) -> Failed | None:
        """Return why a response is not parsed, or None.

        Without a ``link`` it answers a request outside the frontier.
        """
        scope = self._scope
        if len(fetched.body) > scope.max_page_bytes:
            return fetched.as_failure(FailureKind.TOO_LARGE)
        media_type = media_type_of(fetched.headers)
        # Feeds and sitemaps are accepted as seeds and where those lead.
        if (
            media_type
            and media_type not in scope.content_types
            and converter_of(fetched, self.converters) is None
            and (link is None or not is_seed_feed(link, fetched))
        ):
            return fetched.as_failure(FailureKind.WRONG_TYPE, media_type)
        return None

    def read(
        self, link: QueuedLink, fetched: Fetched, ahead: ParsedPage | Failed | None
    ) -> ParsedPage | Failed:
        """Return the page of a response; Failed when there is none or the scope excludes it.

        ``ahead`` is the result of parsing ahead of time; None parses here.
        """
        refused = self.refusal(link, fetched)
        if refused is not None:
            return refused
        read = self._completed(ahead, fetched) if isinstance(ahead, ParsedPage) else ahead
        if read is None:
            read = self.page_parser().read(fetched)
        if isinstance(read, Failed):
            if read.kind in _PARSER_FAILURES:
                return read
            return fetched.as_failure(read.kind, read.detail)
        for stage, seconds in read.seconds.items():
            self._stages.add(stage, seconds)
        language = read.page.language
        if self._scope.languages and language and language not in self._scope.languages:
            failed = fetched.as_failure(FailureKind.WRONG_LANGUAGE, language)
            left_out = read.page.is_noindex_at(fetched.received_at) and not self._archives_noindex
            return replace(failed, exchange=None) if left_out else failed
        return read

    def _completed(self, parsed: ParsedPage, fetched: Fetched) -> ParsedPage:
        """Return a page that was parsed ahead with its records, by the current classifier."""
        parsed, builder = self._reclassified(parsed), self._archive.record_builder
        if parsed.record is not None or builder is None:
            return parsed
        return replace(parsed, record=builder.capture(fetched))

    def _reclassified(self, parsed: ParsedPage) -> ParsedPage:
        """Classify again if the classifier was replaced since the page was parsed."""
        if parsed.classifier == self._classifier.name:
            return parsed
        classification = self._classifier.classify(parsed.page)
        return replace(
            parsed,
            findings={
                **parsed.findings,
                **self.page_parser().ratings(parsed.page, classification),
            },
            classification=classification,
            classifier=self._classifier.name,
            static_features=None,
        )


def is_seed_feed(link: QueuedLink, fetched: Fetched) -> bool:
    """Whether this is a seed's feed or sitemap; the nesting of sitemaps is limited."""
    return link.depth == 0 and link.hops < MAX_NESTED_FEEDS and is_feed(fetched)


EarlyResult = ParsedPage | RobotsFile | Failed | None
"""A response that was parsed before it is settled: a page, or a robots.txt."""


# Responses and pages as messages of a parser process.

_REPLY_PAGE, _REPLY_FAILURE, _REPLY_ROBOTS = b"R", b"F", b"T"
_CPU_SECONDS = struct.Struct(">d")


def _encode_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise TypeError(f"{type(value)} is not part of a parsed page")


def _decode_array(kind: type, value: tuple[str, Sequence[int], bytes]) -> object:
    dtype, shape, numbers = value
    return np.frombuffer(numbers, dtype).reshape(shape)


_encode = msgspec.msgpack.Encoder(enc_hook=_encode_array).encode
_decode_request = msgspec.msgpack.Decoder(tuple[Fetched, str | None]).decode
_decode_page = msgspec.msgpack.Decoder(ParsedPage, dec_hook=_decode_array).decode
_decode_failure = msgspec.msgpack.Decoder(Failed).decode
_decode_robots = msgspec.msgpack.Decoder(RobotsFile).decode


def encode_request(fetched: Fetched, robots_token: str | None = None) -> bytes:
    """Encode a response for the process.

    With ``robots_token`` it is a robots.txt, to parse for this product token.
    """
    return _encode((fetched, robots_token))


def decode_reply(result: bytes) -> ParsedPage | RobotsFile | Failed:
    """Decode the result of :class:`ParsingHandler`."""
    kind, body = result[:1], memoryview(result)[1 + _CPU_SECONDS.size :]
    if kind == _REPLY_ROBOTS:
        return _decode_robots(body)
    return _decode_page(body) if kind == _REPLY_PAGE else _decode_failure(body)


def parsing_cpu_s(result: bytes) -> float:
    """Return the CPU time behind a result of :class:`ParsingHandler`."""
    return float(_CPU_SECONDS.unpack_from(result, 1)[0])


@dataclass(frozen=True, slots=True)
class ParsingHandler:
    """Parses responses in a parser process; a :data:`focused.parser_process.Handler`."""

    reader: PageParser

    def __call__(self, message: bytes) -> bytes:
        """Parse one response encoded by :func:`encode_request`."""
        began = time.process_time()
        kind, body = self._parse(*_decode_request(message))
        return kind + _CPU_SECONDS.pack(time.process_time() - began) + body

    def _parse(self, fetched: Fetched, robots_token: str | None) -> tuple[bytes, bytes]:
        if robots_token is not None:
            return _REPLY_ROBOTS, _encode(parse_robots_body(fetched.body, robots_token))
        read = self.reader.read(fetched)
        if isinstance(read, Failed):
            return _REPLY_FAILURE, _encode(read)
        return _REPLY_PAGE, _encode(self.reader.with_static_features(read))
