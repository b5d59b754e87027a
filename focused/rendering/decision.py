"""Which pages may need JavaScript, and for which of them rendering is worth its cost.

:func:`javascript_need` reads it from a response and the text that it shows without scripts. A page
with enough text is not parsed a second time: it costs one search for ``<script``.

:func:`is_worth_rendering` decides by host and URL template. Whether rendering adds text or links is
a Bernoulli variable for each template and :class:`JavascriptNeed`. Its Beta posterior begins with
what the same host's other templates taught, and those with the prior of the need. A page is
rendered if ``p * value >= PRICE * cost``: ``p`` is drawn from the posterior (Thompson sampling,
1933), so that templates of uncertain gain are sampled and certain ones are not; ``value`` is the
relevance predicted for the link, relative to the mean of the links that the crawl fetches: what
else it could do; ``cost`` is the time that rendering occupies the host, in requests to it. A host
with few other links has nothing better to do: pages that show nothing cost less there.

Evidence fades with the pages seen since, rendered or not: a site that changes is sampled again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from focused.web.decoding import MAX_PARSED_BYTES, limit_markup, media_type_of
from focused.web.page import Failed, FailureKind, Fetched, Page

FEW_WORDS = 30
"""A page with fewer words shows nothing of its own."""

ENOUGH_WORDS = 200
"""A page with so many words is not searched for signs."""

_MAX_ROOT_WORDS = 5
_CHARS_PER_WORD = 10  # also without spaces between words; more is rare
_SCRIPT_TAGS = (b"<script", b"<SCRIPT")
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_SCRIPT_TYPES = frozenset(
    {"", "module", "text/javascript", "application/javascript", "text/babel", "text/ecmascript"}
)
_ROOTS = ", ".join(
    (
        *("#root", "#app", "#__next", "#__nuxt", "#___gatsby", "#svelte", "#app-root", "#main-app"),
        *("#q-app", "#ember-app", "#react-root", "#application", "#mount", "app-root", "[ng-app]"),
        *("[data-ng-app]", "[ng-version]", "[data-reactroot]", "[data-v-app]", "[data-ember-root]"),
        *("[x-data]", "[data-sveltekit-hydrate]", "[q\\:container]", "astro-island"),
    )
)


class JavascriptNeed(StrEnum):
    """How likely a page needs JavaScript, by its signs alone.

    ``NONE``: it has no scripts. ``UNLIKELY``: it has scripts and text. ``POSSIBLE``: it has signs
    of an application, and some text. ``LIKELY``: it has scripts and shows nothing.
    """

    NONE = "none"
    UNLIKELY = "unlikely"
    POSSIBLE = "possible"
    LIKELY = "likely"


@dataclass(frozen=True, slots=True)
class ScriptSigns:
    """What a page shows without JavaScript, and what hints at more.

    ``words`` and ``links`` are those of the page without scripts; ``scripts`` counts executable
    script elements, ``modules`` those with ``type=module``. ``asks_for_javascript``: a ``noscript``
    element mentions JavaScript or leads elsewhere. ``has_empty_root``: a framework's root element
    is empty. ``has_fragment``: ``<meta name=fragment>`` of the former AJAX crawling scheme.
    """

    words: int
    links: int
    scripts: int = 0
    modules: int = 0
    asks_for_javascript: bool = False
    has_empty_root: bool = False
    has_fragment: bool = False

    @property
    def need(self) -> JavascriptNeed:
        """How likely the page needs JavaScript."""
        if not self.scripts:
            return JavascriptNeed.NONE
        is_application = self.asks_for_javascript or self.has_empty_root or self.has_fragment
        if self.words < FEW_WORDS and (is_application or self.modules or not self.links):
            return JavascriptNeed.LIKELY
        if self.words < ENOUGH_WORDS and (is_application or self.words < FEW_WORDS):
            return JavascriptNeed.POSSIBLE
        return JavascriptNeed.UNLIKELY


def javascript_need(fetched: Fetched, parsed: Page | Failed) -> JavascriptNeed:
    """Return how likely the page of a response needs JavaScript.

    ``parsed`` is the page without scripts, or why there is none: a page without text and links
    fails as :attr:`FailureKind.EMPTY`.
    """
    if isinstance(parsed, Failed):
        if parsed.kind is not FailureKind.EMPTY:
            return JavascriptNeed.NONE
        words, links = 0, 0
    else:
        if parsed.format:
            return JavascriptNeed.NONE
        words, links = _count_words(parsed.text), len(parsed.links)
    if media_type_of(fetched.headers) not in _HTML_TYPES:
        return JavascriptNeed.NONE
    if not any(each in fetched.body for each in _SCRIPT_TAGS):
        return JavascriptNeed.NONE
    if words >= ENOUGH_WORDS:
        return JavascriptNeed.UNLIKELY
    return read_signs(fetched.body, words, links).need


def read_signs(body: bytes, words: int, links: int) -> ScriptSigns:
    """Read the signs of an HTML document that shows so many words and links."""
    html = limit_markup(body[:MAX_PARSED_BYTES].decode("utf-8", "replace"))
    try:
        tree = LexborHTMLParser(html, scripting=True)
    except SelectolaxError:  # no memory for it
        return ScriptSigns(words, links)
    types = [_type_of(script) for script in tree.css("script")]
    return ScriptSigns(
        words,
        links,
        scripts=sum(each in _SCRIPT_TYPES for each in types),
        modules=types.count("module"),
        asks_for_javascript=_asks_for_javascript(tree.css("noscript")),
        has_empty_root=any(map(_is_empty, tree.css(_ROOTS))),
        has_fragment=bool(tree.css("meta[name=fragment]")),
    )


def _count_words(text: str) -> int:
    """Return the number of words, or :data:`ENOUGH_WORDS` without splitting a long text."""
    at_least = len(text) // _CHARS_PER_WORD
    return ENOUGH_WORDS if at_least >= ENOUGH_WORDS else max(at_least, len(text.split()))


def _type_of(script: LexborNode) -> str:
    return (script.attributes.get("type") or "").strip().lower()


def _asks_for_javascript(noscripts: Iterable[LexborNode]) -> bool:
    # With scripting, the content of noscript is text.
    texts = (node.text().lower() for node in noscripts)
    return any("javascript" in text or "http-equiv" in text for text in texts)


def _is_empty(root: LexborNode) -> bool:
    return len(root.text(deep=True, separator=" ").split()) < _MAX_ROOT_WORDS


PRIORS = {
    JavascriptNeed.UNLIKELY: 0.03,
    JavascriptNeed.POSSIBLE: 0.5,
    JavascriptNeed.LIKELY: 0.9,
}
"""Prior probability that rendering adds anything."""

PRIOR_WEIGHT = 2.0
"""Pages that a prior counts as."""

PRICE = 0.1
"""What one request to the host is worth, in average pages."""

FIRST_COST = 3.0
MIN_COST = 2.0
"""Rendering in requests: before the first one of a host, and the least, for the browser's time."""

MEMORY_PAGES = 150.0
"""Pages of a template after which its evidence counts 1/e."""

MANY_LINKS = 50
MIN_SHARE = 0.1
"""Rendering has its full price at hosts with so many queued links, at others this share or more."""

MIN_VALUE = 0.1
MAX_VALUE = 2.0
"""Predicted relevances are not known better than this."""

MAX_TEMPLATES = 64
"""Templates of a host that are told apart."""

MIN_NEW_WORDS = 20
MIN_NEW_SHARE = 0.2
MIN_NEW_LINKS = 3

_COST_STEP = 0.1
_OTHER = "*"


class Evidence(msgspec.Struct):
    """Rendered pages with and without gain; both fade."""

    gained: float = 0.0
    not_gained: float = 0.0

    def fade(self, share: float) -> None:
        """Keep only ``share`` of the evidence."""
        self.gained *= share
        self.not_gained *= share


class HostRendering(msgspec.Struct):
    """What was learned of one host, as plain data.

    ``by_template`` has keys of template and need, ``by_need`` keys of the need alone. ``cost`` is
    the mean cost of rendering a page, in requests to the host; 0: unknown. ``needing`` counts pages
    that show nothing without JavaScript, ``rendered`` those that a browser rendered, ``gained``
    those that rendering added to; ``failures`` counts rendered pages without result, and pages that
    were to be rendered, by reason; ``refused`` counts subrequests by reason.
    """

    by_template: dict[str, Evidence] = {}
    by_need: dict[str, Evidence] = {}
    cost: float = 0.0
    needing: int = 0
    rendered: int = 0
    gained: int = 0
    requests: int = 0
    seconds: float = 0.0
    failures: dict[str, int] = {}
    refused: dict[str, int] = {}


def adds_content(raw: Page | None, rendered: Page) -> bool:
    """Whether a rendered page has new words or links enough to be used instead of the raw one.

    ``raw`` is None for a page without text and links.
    """
    known = set() if raw is None else {link.url for link in raw.links}
    before = Counter(() if raw is None else raw.text.split())
    words = (Counter(rendered.text.split()) - before).total()
    return sum(link.url not in known for link in rendered.links) >= MIN_NEW_LINKS or (
        words >= max(MIN_NEW_WORDS, MIN_NEW_SHARE * before.total())
    )


def url_template(url: str) -> str:
    """Return the template of a normalised URL: its first folder, and the number of others.

    ``https://a.example/docs/intro/x.html?q=1`` gives ``/docs/*/*?``.
    """
    path, mark, _ = url.split("/", 3)[3].partition("?")
    folders = path.split("/")
    first = [folders[0]] if len(folders) > 1 else ["*"] if folders[0] else []
    return "/" + "/".join([*first, *("*" for _ in folders[1:])]) + mark


def is_worth_rendering(
    host: HostRendering,
    url: str,
    need: JavascriptNeed,
    value: float,
    seed: int,
    *,
    queued: int = MANY_LINKS,
) -> bool:
    """Decide whether to render the page of ``url``; deterministic given ``seed`` and ``host``.

    ``value`` is the predicted relevance of its link, relative to that of an average link;
    ``queued`` is the number of queued links of the host.
    """
    if need is JavascriptNeed.NONE:
        return False
    gained, not_gained = _posterior(host, url_template(url), need)
    drawn = random.Random(f"{seed} {host.rendered} {url}").betavariate(gained, not_gained)
    cost = max(host.cost or FIRST_COST, MIN_COST)
    if need is not JavascriptNeed.UNLIKELY:
        cost *= min(max(queued / MANY_LINKS, MIN_SHARE), 1.0)
    return drawn * min(max(value, MIN_VALUE), MAX_VALUE) >= PRICE * cost


def count_seen(host: HostRendering, url: str, need: JavascriptNeed) -> None:
    """Let the evidence of a template fade by one page that was seen."""
    evidence = host.by_template.get(_key(host, url_template(url), need))
    if evidence is not None:
        evidence.fade(1.0 - 1.0 / MEMORY_PAGES)
    shared = host.by_need.get(need)
    if shared is not None:
        shared.fade(1.0 - 1.0 / MEMORY_PAGES)


def learn_gain(host: HostRendering, url: str, need: JavascriptNeed, *, gained: bool) -> None:
    """Learn from a page that was rendered."""
    key = _key(host, url_template(url), need)
    for evidence in (
        host.by_template.setdefault(key, Evidence()),
        host.by_need.setdefault(need.value, Evidence()),
    ):
        evidence.gained += gained
        evidence.not_gained += not gained


def learn_cost(host: HostRendering, seconds: float, request_s: float) -> None:
    """Learn the cost of a rendered page that occupied its host for so many seconds.

    ``request_s`` is the time that one request to the host takes, its delay included.
    """
    cost = seconds / max(request_s, 0.1)
    host.cost = cost if not host.cost else host.cost + _COST_STEP * (cost - host.cost)


def _posterior(host: HostRendering, template: str, need: JavascriptNeed) -> tuple[float, float]:
    shared = host.by_need.get(need) or Evidence()
    prior = (PRIORS[need] * PRIOR_WEIGHT + shared.gained) / (
        PRIOR_WEIGHT + shared.gained + shared.not_gained
    )
    prior = min(max(prior, 0.001), 0.999)
    own = host.by_template.get(_key(host, template, need)) or Evidence()
    return PRIOR_WEIGHT * prior + own.gained, PRIOR_WEIGHT * (1.0 - prior) + own.not_gained


def _key(host: HostRendering, template: str, need: JavascriptNeed) -> str:
    key = f"{need} {template}"
    if key not in host.by_template and len(host.by_template) >= MAX_TEMPLATES:
        return f"{need} {_OTHER}"
    return key


def new_seed(name: str) -> int:
    """Return the seed of a crawl's decisions, from the name of its topic."""
    return random.Random(name).getrandbits(32)
