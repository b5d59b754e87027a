"""Prepare and search the pages that may be asked about; select the one whose label helps most.

Until a few good pages are known, the most relevant pages come first: nothing can be learned without
good ones. After that three turns in four go to ``uncertain`` pages, with a relevance near the
threshold (Lewis, Gale 1994, "A sequential algorithm for training text classifiers"), one to
``doubtful`` ones: called on topic but unlike all good pages, or off topic but like one. Always
taking the most relevant pages makes worse models than random ones.

Each utility is multiplied by the distance to the nearest labelled page, by how typical the page is
of the pool (Settles, Craven 2008, "information density"), and by how few pages of its host are
labelled. Near-duplicates of labelled pages are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from focused.archive.archive import PageRow
from focused.classifier.topic_classifier import TopicClassifier
from focused.documents.convert import document_format, needs_process, to_html
from focused.labelling.labelling_task import FetchedPages, relevance_of
from focused.labels.label_file import Reason, Verdict, evaluation_hash, role_of
from focused.parser_process import HandlerError, ParserProcess, ParsingLimits, ParsingStoppedError
from focused.text.documents import page_words
from focused.text.tokens import tokenize, url_words
from focused.web.html.parse import needs_parser_process, parse_page
from focused.web.page import Failed, Fetched, Page

_FEATURES = 1 << 18
_MAX_TEXT_WORDS = 3_000


def page_vectors(pages: Iterable[Page]) -> sp.csr_matrix:
    """Word vectors of pages as unit rows, shape (n, 2**18); a page without words is zero.

    Words weigh log(1 + count) times their inverse document frequency among ``pages``, so that menus
    and licences make no pages similar.
    """
    hashing = _hashing_vectorizer()
    # Add an empty page, because the hasher rejects an empty iterable.
    counts = hashing.transform(chain((Page(""),), pages))[1:]
    known = np.bincount(counts.indices, minlength=_FEATURES)
    rarity = np.log((1.0 + counts.shape[0]) / np.maximum(known, 1))
    counts.data = np.log1p(counts.data) * rarity[counts.indices]
    return normalize(counts) if counts.shape[0] else counts


def rows_with_words(vectors: sp.csr_matrix, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of :func:`page_vectors` have all ``words``, shape (n,).

    Words are matched by hash; one in thousands collides.
    """
    columns = _hashing_vectorizer().transform([Page("", text=" ".join(words))]).indices
    found = (vectors[:, columns] > 0).sum(axis=1)
    return np.asarray(found == len(columns)).ravel() & bool(len(columns))


def cosine_to(vectors: sp.csr_matrix, place: int) -> NDArray[np.float64]:
    """Cosine of every row of ``vectors`` with the row at ``place``, in [0, 1], shape (n,)."""
    return np.asarray((vectors @ vectors[place].T).todense(), dtype=float).ravel().clip(0.0, 1.0)


def mean_cosine(vectors: sp.csr_matrix) -> NDArray[np.float64]:
    """The mean cosine of each row with all rows, in [0, 1], shape (n,)."""
    if not vectors.shape[0]:
        return np.zeros(0)
    centre = np.asarray(vectors.mean(axis=0)).ravel()
    return np.asarray(vectors @ centre, dtype=float)


def _hashing_vectorizer() -> HashingVectorizer:
    return HashingVectorizer(
        analyzer=_page_tokens, n_features=_FEATURES, alternate_sign=False, norm=None
    )


def _page_tokens(page: Page) -> list[str]:
    text, head = page_words(page)
    return text[:_MAX_TEXT_WORDS] + head


DUPLICATE_SIMILARITY = 0.9
"""Of pages that are this similar one is shown."""

MIN_GOOD_PAGES = 5
"""The most relevant pages are shown until this many good ones are known."""

_REASON_CYCLE: tuple[Reason, ...] = ("uncertain", "uncertain", "uncertain", "doubtful")
_DENSITY_POWER = 0.5
_HOST_POWER = 0.25

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingPool:
    """The n pages to select from for training.

    ``vectors`` has unit rows, shape (n, d); ``relevance``, shape (n,) in [0, 1], and ``threshold``
    are the model's.
    """

    pages: tuple[PageRow, ...]
    vectors: sp.csr_matrix
    relevance: FloatArray
    threshold: float


class PageSelector:
    """Selects pages of a pool, and tracks which are labelled."""

    def __init__(self, pool: TrainingPool, good: int = 0) -> None:
        """``good`` counts good pages known outside the pool."""
        self._pool = pool
        self._good = good
        self._turn = 0
        self._typical = mean_cosine(pool.vectors) ** _DENSITY_POWER
        self._near = np.zeros(len(pool.pages))
        self._near_good = np.zeros(len(pool.pages))
        self._labelled = np.zeros(len(pool.pages), dtype=bool)
        self._of_host: Counter[str] = Counter()

    @property
    def good_pages_needed(self) -> int:
        """How many good pages are missing before other pages are selected."""
        return max(MIN_GOOD_PAGES - self._good, 0)

    def add_label(self, place: int, verdict: Verdict) -> None:
        """Record the label of the page at ``place``, selected here or not."""
        alike = cosine_to(self._pool.vectors, place)
        self._near = np.maximum(self._near, alike)
        if verdict == "yes":
            self._near_good = np.maximum(self._near_good, alike)
            self._good += 1
        self._labelled[place] = True
        self._of_host[self._pool.pages[place].host] += 1

    def next(self) -> tuple[int, Reason] | None:
        """The page to show next, and why; None when none is left."""
        unlabelled = ~self._labelled
        if not unlabelled.any():
            return None
        fresh = unlabelled & (self._near < DUPLICATE_SIMILARITY)
        reason: Reason = (
            "high" if self.good_pages_needed else _REASON_CYCLE[self._turn % len(_REASON_CYCLE)]
        )
        self._turn += 1
        utility = _UTILITY[reason](self) * self._diversity()
        utility[~(fresh if fresh.any() else unlabelled)] = -1.0
        return int(np.argmax(utility)), reason

    def _diversity(self) -> FloatArray:
        crowd = np.array([1.0 + self._of_host[page.host] for page in self._pool.pages])
        value: FloatArray = (1.0 - self._near) * self._typical / crowd**_HOST_POWER
        return value

    def _centred_relevance(self) -> FloatArray:
        """Relevance shifted so that the threshold is a half."""
        odds, at = _odds(self._pool.relevance), _odds(np.array([self._pool.threshold]))
        share: FloatArray = odds / (odds + at)
        return share

    def uncertain(self) -> FloatArray:
        """1 at the threshold, falling to 0 at certainty."""
        leaning = self._centred_relevance()
        return 4.0 * leaning * (1.0 - leaning)

    def doubtful(self) -> FloatArray:
        """High where the classification contradicts the similarity to good pages."""
        leaning = self._centred_relevance()
        return np.where(
            leaning >= 0.5, leaning * (1.0 - self._near_good), (1.0 - leaning) * self._near_good
        )

    def high(self) -> FloatArray:
        """The relevance."""
        return self._pool.relevance


_UTILITY: dict[Reason, Callable[[PageSelector], FloatArray]] = {
    "uncertain": PageSelector.uncertain,
    "doubtful": PageSelector.doubtful,
    "high": PageSelector.high,
}


def _odds(probability: FloatArray) -> FloatArray:
    held = np.clip(probability, 1e-3, 1.0 - 1e-3)
    odds: FloatArray = held / (1.0 - held)
    return odds


MAX_POOL_PAGES = 2_000
"""Pages that active learning considers; each costs some milliseconds."""

PoolProgress = Callable[[int, int], None]


def evaluation_queue(crawled: FetchedPages) -> list[PageRow]:
    """The pages of the evaluation set, in the order in which they are shown."""
    drawn = (page for page in crawled.pages.values() if role_of(page.url) == "evaluation")
    return sorted(drawn, key=lambda page: evaluation_hash(page.url))


def select_candidates(crawled: FetchedPages, limit: int = MAX_POOL_PAGES) -> list[PageRow]:
    """At most ``limit`` pages for training, by the crawl's own figures.

    If there are more: half from around the threshold, a quarter with the highest relevance, a
    quarter with the highest score.
    """
    pages = [page for page in crawled.pages.values() if role_of(page.url) == "training"]
    if len(pages) <= limit:
        return pages
    threshold = _observed_threshold(pages)
    chosen: dict[str, PageRow] = {}
    for share, rank in (
        (0.5, lambda page: abs(relevance_of(page) - threshold)),
        (0.75, lambda page: -relevance_of(page)),
        (1.0, lambda page: -page.score),
    ):
        for page in sorted(pages, key=rank):
            if len(chosen) >= share * limit:
                break
            chosen[page.url] = page
    return list(chosen.values())


def build_training_pool(
    crawled: FetchedPages,
    classifier: TopicClassifier | None,
    progress: PoolProgress | None = None,
    limit: int = MAX_POOL_PAGES,
    parsing_limits: ParsingLimits | None = None,
) -> TrainingPool:
    """Parse, classify and compare the candidates; unreadable ones are left out.

    So are those that exceed ``parsing_limits``, as in a crawl. Without a ``classifier`` the
    crawl's own relevance is used. ``progress(done, total)`` is called after each page.
    """
    chosen = select_candidates(crawled, limit)
    kept: list[PageRow] = []
    relevance: list[float] = []

    def read(parser: BoundedParser) -> Iterable[Page]:
        for done, page in enumerate(chosen, start=1):
            parsed = parser.parse_crawled_page(crawled, page)
            if progress:
                progress(done, len(chosen))
            if parsed is not None:
                kept.append(page)
                relevance.append(
                    classifier.classify(parsed).relevance if classifier else relevance_of(page)
                )
                yield parsed

    with BoundedParser(parsing_limits) as parser:
        vectors = page_vectors(read(parser))
    return TrainingPool(
        tuple(kept),
        vectors,
        np.array(relevance, dtype=float),
        classifier.threshold if classifier else _observed_threshold(kept),
    )


class BoundedParser:
    """Parses crawled pages as a crawl does: those that may take long in a parser process.

    The process starts with the first such page. Usable as a context manager.
    """

    def __init__(self, limits: ParsingLimits | None = None) -> None:
        self._process = ParserProcess(_parse, limits or ParsingLimits())

    def parse_crawled_page(self, crawled: FetchedPages, page: PageRow) -> Page | None:
        """Return the page as a crawl parses it; None when it cannot be read within the limits."""
        fetched = crawled.response(page)
        if fetched is None:
            return None
        is_long = needs_process(document_format(fetched)) or needs_parser_process(fetched)
        parsed = self._bounded(fetched) if is_long else _parse_page(fetched)
        return parsed if isinstance(parsed, Page) else None

    def __enter__(self) -> BoundedParser:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()

    def _bounded(self, fetched: Fetched) -> Page | None:
        try:
            return _page.decode(self._process.ask(_packed(fetched)))
        except (HandlerError, ParsingStoppedError):
            return None


_packed = msgspec.msgpack.Encoder().encode
_fetched = msgspec.msgpack.Decoder(Fetched).decode
_page: msgspec.msgpack.Decoder[Page | None] = msgspec.msgpack.Decoder(Page | None)


def _parse_page(fetched: Fetched) -> Page | Failed:
    html = to_html(fetched)
    return html if isinstance(html, Failed) else parse_page(html)


def _parse(message: bytes) -> bytes:
    """Parse a fetched page; runs in the parser process."""
    parsed = _parse_page(_fetched(message))
    return _packed(None if isinstance(parsed, Failed) else parsed)


def _observed_threshold(pages: Iterable[PageRow]) -> float:
    """The lowest relevance that the crawl called on topic; 0.5 without any."""
    on = [relevance_of(page) for page in pages if page.on_topic]
    return min(on, default=0.5)


MAX_RESULTS = 20


def search_pages(
    crawled: FetchedPages, pool: TrainingPool, query: str, left_out: Collection[str]
) -> tuple[PageRow, ...]:
    """At most :data:`MAX_RESULTS` pages that have all words of ``query``, the best matches first.

    Matches in the title rank before those in the URL, and these before those in the text; then by
    relevance. In titles and URLs the last word may be a prefix. Texts are searched in ``pool``
    only, by the words counted there, so nothing is read or parsed. Pages ``left_out`` (URLs) and
    those of the evaluation set are not found: searched pages are no random sample.
    """
    query_words = tokenize(query)
    if not query_words:
        return ()
    has_words = rows_with_words(pool.vectors, query_words)
    in_text = {page.url for page, has in zip(pool.pages, has_words, strict=True) if has}
    ranked: list[tuple[int, float, str, PageRow]] = []
    for page in crawled.pages.values():
        if page.url in left_out or role_of(page.url) != "training":
            continue
        rank = _rank(page, query_words, in_text)
        if rank is not None:
            ranked.append((rank, -relevance_of(page), page.url, page))
    return tuple(page for *_, page in sorted(ranked)[:MAX_RESULTS])


def _rank(page: PageRow, query_words: list[str], in_text: Collection[str]) -> int | None:
    if _has_words(tokenize(page.title), query_words):
        return 0
    if _has_words(tokenize(url_words(page.url)), query_words):
        return 1
    return 2 if page.url in in_text else None


def _has_words(tokens: list[str], query_words: list[str]) -> bool:
    *whole, last = query_words
    return set(tokens).issuperset(whole) and any(token.startswith(last) for token in tokens)
