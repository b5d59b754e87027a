"""The card of the link priors: what they are, what they were fitted on, how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from focused.evaluation.prior_quality import WebQuality
from focused.learning.evidence import FEATURE_NAMES
from focused.learning.link_prior import DEFAULT_PRIOR, PriorFile

_WHAT = """\
What evidence about a link has been worth on recorded webs: a linear model in log-odds over the
apprentice's features ([what each tells](../focused/learning/evidence.py)). A crawl starts from
it and moves it by what it learns. It names no word, host or topic. Files:
[`link-priors/`](link-priors/); `training.link_prior` of a topic file chooses one."""

_LEFT_OUT = """\
`all-webs` is for crawls of webs it has not seen, the live one above all. A crawl of a recorded
web that labels will score must start from the prior that was fitted without that web, as the
shipped topics do: the guide must not have seen the judge's labels."""

_FITTED = """\
The crawls are simulated, with the crawler's own objects, from five pages on topic and from five
off topic. They follow weights set by hand before anything was fitted, but draw links in
proportion to their odds, one in five of them blindly: otherwise the log would hold nothing but
what those weights like. Logged is a link's evidence when its turn came, and what it led to by
the web's labels. Seeds, training pages, copies and pages without a label are left out.

The fit is a logistic regression with an intercept of its own for each run, signs held, a ridge
of 2,000 examples; each web counts alike, and each run of a web. Seed draws differ from the
benchmark's."""

_QUALITY = """\
How often a link to a page on topic is ranked before another one of the same run (AUC, mean over
runs; .5 is blind), and how far scores are from shares (calibration error). *Left out*: the
prior that has not seen this web. *All webs*: `all-webs`, which has, so its figures flatter.
*URL*, *parent*: by the classifier's verdict on the URL's words, or by the relevance of the page
that links, alone. These are first guesses: in a crawl the apprentice goes on learning."""

_LIMITS = """\
- Four webs, all in English: a documentation web, two dictionaries, a package index. Three of
  them have one to three hosts. None has advertisements, spam, forums, news.
- Labels are made by rules or by others, not by reading the pages, and miss some.
- The topics and webs are those of the benchmarks. A prior for a benchmark never saw labels of
  the web it crawls, but the features and the way of fitting were chosen with all four webs in
  sight.
- A sum of evidence: it cannot tell that two features say the same thing in one place and not in
  another.
- In a noised crawl fewer pages are on topic than in a real one: the bias is low, and the
  apprentice raises it."""

_LICENCES = """\
Data: Debian documentation packages and package index (each package's own free licence, by
Debian's Free Software Guidelines), FOLDOC (GFDL 1.1 or later), WordNet 3.0 (WordNet licence);
no text of theirs is in these files."""


def render_prior_card(
    priors: Mapping[str, PriorFile], qualities: Sequence[WebQuality], command: str
) -> str:
    """The card as Markdown; ``command`` is what fits the priors again."""
    whole = priors[DEFAULT_PRIOR]
    runs = sum(each.runs for each in qualities)
    topics = sum(each.topics for each in qualities)
    parts = [
        "# The link priors",
        _WHAT,
        _LEFT_OUT,
        "## Fitted on",
        f"{whole.examples:,} links that {runs} crawls followed, of {topics} topics on "
        f"{len(qualities)} recorded webs.",
        _fitted_on(qualities),
        _FITTED,
        "## Weights",
        "In nats for a unit of the feature; in brackets for a standard deviation, "
        f"of `{DEFAULT_PRIOR}`.",
        _weights(priors),
        "## Quality",
        _QUALITY,
        _quality(qualities),
        "## Fit them again",
        f"```\n{command}\n```",
        "The same webs and seed give the same bytes.",
        "## Limits",
        _LIMITS,
        _LICENCES,
    ]
    return "\n\n".join(parts) + "\n"


def _fitted_on(qualities: Sequence[WebQuality]) -> str:
    rows = [
        (q.web, str(q.topics), str(q.runs), f"{q.examples:,}", f"{q.on_topic:.1%}")
        for q in qualities
    ]
    return _table(("web", "topics", "crawls", "links", "led to a page on topic"), rows)


def _weights(priors: Mapping[str, PriorFile]) -> str:
    whole = priors[DEFAULT_PRIOR]
    rows = [
        (
            f"`{name}`",
            *(f"{prior.weights[name]:.2f}" for prior in priors.values()),
            f"({whole.weights[name] * whole.scales[name]:.2f})",
        )
        for name in FEATURE_NAMES
    ]
    biases = ("bias", *(f"{prior.bias:.2f}" for prior in priors.values()), "")
    return _table(("feature", *(f"`{name}`" for name in priors), "(standardised)"), [*rows, biases])


def _quality(qualities: Sequence[WebQuality]) -> str:
    rows = [
        (
            each.web,
            *map(_figure, (each.left_out, each.all_webs, each.url, each.parent)),
            *map(_figure, (each.left_out_error, each.all_webs_error)),
        )
        for each in qualities
    ]
    names = ("web", "left out", "all webs", "URL", "parent")
    return _table((*names, "calibration error, left out", "all webs"), rows)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
