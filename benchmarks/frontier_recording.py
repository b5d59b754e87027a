"""Record what a real crawl pushes into its frontier, as columns to sample from.

Watches a crawl of a recorded web by the ``focused`` policy with the live crawl's apprentice. For
each pushed link it records the position on its page, whether it waited already, and the content of
its queue row. Nothing is invented.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import focused
from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink, SettledFetch
from focused.files import write_atomically
from focused.orderings import PolicyInputs, find_policy
from focused.recorded_web.recorded_web import RecordedWeb
from focused.scrapy_addon.crawl_models import load_crawl_models
from focused.topic import Budget
from focused.topic.topic_file import load_topic
from focused.web.urls import host_of
from focused_lab.simulation.parsed_web import ParsedWeb
from focused_lab.simulation.simulator import hashed_latency, simulate

_MAX_ANCHOR_CHARS = 200  # as focused.crawl.enqueue limits them


class Site(msgspec.Struct, frozen=True):
    """A host of the web: its name, and the rest of its links' URLs in order of discovery."""

    name: str
    tails: list[str]


class Recording(msgspec.Struct, frozen=True):
    """Pushed links, row i of each column for link i, in the order of pushing.

    ``page`` numbers the pages; ``ordinal`` the hosts that a page links to, 0 being its own.
    ``waited`` marks links that were queued already, ``place`` is their position among the links
    found on their host, in [0, 1); ``leads`` marks those whose anchor stays. ``features`` is flat,
    ``feature_names`` per row. ``settled_share`` is the share of followable links whose targets had
    left the queue, which are not pushed. ``exploration`` and ``worth_waiting_for`` are the
    policy's, in nats. ``pages_linking`` counts, for each host, the pages of others that link to it.
    """

    made_from: str
    feature_names: tuple[str, ...]
    pages: int
    settled_share: float
    worth_waiting_for: float
    exploration: tuple[float, float]
    pages_linking: list[int]
    sites: list[Site]
    page: list[int]
    ordinal: list[int]
    waited: list[bool]
    leads: list[bool]
    place: list[float]
    rank_score: list[float]
    score: list[float]
    depth: list[int]
    tag_path_key: list[int]
    anchor: list[str]
    features: bytes

    def __len__(self) -> int:
        return len(self.page)

    def evidence_rows(self) -> NDArray[np.float64]:
        """Shape (n, len(feature_names))."""
        return np.frombuffer(self.features).reshape(len(self), len(self.feature_names))


class Watch:
    """Records what a crawl settles; pass it to the simulator."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {
            name: []
            for name in (
                *("page", "ordinal", "waited", "leads", "place", "rank_score"),
                *("score", "depth", "tag_path_key", "anchor", "features"),
            )
        }
        self.sites: dict[str, dict[str, int]] = {}
        self.linking: Counter[str] = Counter()
        self.pages = 0
        self.settled = 0

    def __call__(self, settled: SettledFetch) -> None:
        """Record one settled fetch."""
        if settled.page is None:
            return
        own = host_of(settled.page.url)
        ordinals = {own: 0}
        for link in settled.page.links:
            gone = link.url not in settled.scored and link.url in self.sites.get(
                host_of(link.url), ()
            )
            self.settled += gone
        for url, found in settled.scored.items():
            host = host_of(url)
            self._take(url, found, ordinals.setdefault(host, len(ordinals)), host)
            self.columns["depth"].append(settled.link.depth + 1)
        self.linking.update(host for host in ordinals if host != own)
        self.pages += bool(settled.scored)

    def recording(self, made_from: str, policy: Policy) -> Recording:
        """The recording of a crawl by ``policy``."""
        columns = dict(self.columns)
        features = np.array(columns.pop("features"), dtype=np.float64)
        return Recording(
            made_from=made_from,
            feature_names=tuple(policy.scorer.feature_names),
            pages=self.pages,
            settled_share=self.settled / (self.settled + len(features)),
            worth_waiting_for=policy.worth_waiting_for,
            exploration=(
                policy.exploration.new_host_bonus,
                policy.exploration.unproductive_penalty,
            ),
            pages_linking=list(self.linking.values()),
            sites=[Site(name, [_tail(url) for url in urls]) for name, urls in self.sites.items()],
            features=features.tobytes(),
            **columns,
        )

    def _take(self, url: str, found: ScoredLink, ordinal: int, host: str) -> None:
        known = self.sites.setdefault(host, {})
        waited = url in known
        place = known[url] / len(known) if waited else 0.0
        known.setdefault(url, len(known))
        row = {
            "page": self.pages,
            "ordinal": ordinal,
            "waited": waited,
            "leads": waited and found.before is None,
            "place": place,
            "rank_score": found.rank_score,
            "score": found.score,
            "tag_path_key": found.tag_path_key,
            "anchor": found.link.anchor[:_MAX_ANCHOR_CHARS],
            "features": found.features,
        }
        for name, value in row.items():
            self.columns[name].append(value)


def recorded(web: Path, topic_file: Path, pages: int, kept: Path) -> Recording:
    """The pushes of a crawl of ``pages`` pages, cached in the folder ``kept``.

    Recorded again when the crawler's code has changed, because scores may differ.
    """
    made_from = f"{web.name} {topic_file.stem} {pages} {_crawler()}"
    file = kept / f"links-{web.name}-{topic_file.stem}-{pages}.msgpack"
    if file.is_file():
        try:
            recording = msgspec.msgpack.decode(file.read_bytes(), type=Recording)
        except msgspec.DecodeError:
            recording = None
        if recording is not None and recording.made_from == made_from:
            return recording
    print(f"crawling {web} for {pages:,} pages, to know what real links are like ...", flush=True)
    recording = _record(web, topic_file, pages, made_from)
    kept.mkdir(parents=True, exist_ok=True)
    write_atomically(file, msgspec.msgpack.encode(recording))
    return recording


def _crawler() -> str:
    """Identify a version of the crawler."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for package in ("crawl", "learning", "policies", "web"):
        for source in sorted(Path(focused.__path__[0], package).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _record(web: Path, topic_file: Path, pages: int, made_from: str) -> Recording:
    topic = replace(load_topic(topic_file), budget=Budget())
    guide = load_crawl_models(topic, web=str(web), replay=None, say=print)
    policy = find_policy("focused")(PolicyInputs(guide.classifier, guide.scorer))
    watch = Watch()
    with ParsedWeb(RecordedWeb.open(web)) as network:
        simulate(
            topic,
            guide.classifier,
            network,
            policy,
            latency=hashed_latency(0.2, 0),
            training_urls=guide.training_urls,
            pages=pages,
            watch=watch,
        )
    return watch.recording(made_from, policy)


def _tail(url: str) -> str:
    parts = urlsplit(url)
    return url[len(parts.scheme) + 3 + len(parts.netloc) :]


def steepness(counts: Sequence[int]) -> float:
    """The maximum likelihood exponent s of Zipf's law, the r-th largest ~ r**-s, for ``counts``."""
    by_size = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    logs = np.log(np.arange(1, len(by_size) + 1))

    def unlikely(s: float) -> float:
        return float(s * (by_size @ logs) + by_size.sum() * np.log(np.exp(-s * logs).sum()))

    return float(minimize_scalar(unlikely, bounds=(0.0, 4.0), method="bounded").x)


def facts(recording: Recording) -> Mapping[str, Any]:
    """Shares and sizes of the real links, which the sampled ones reproduce."""
    waited, own = np.array(recording.waited), np.array(recording.ordinal) == 0
    tails = [len(tail.encode()) for site in recording.sites for tail in site.tails]
    names = [len(site.name) for site in recording.sites for _ in site.tails]
    anchors = [len(anchor.encode()) for anchor in recording.anchor]
    rank_score = np.array(recording.rank_score)
    elsewhere = sorted(
        {(p, o) for p, o in zip(recording.page, recording.ordinal, strict=True) if o}
    )
    rows = recording.evidence_rows()
    return {
        "made_from": recording.made_from,
        "pages": recording.pages,
        "pushed": len(recording),
        "pushed_a_page": len(recording) / recording.pages,
        "links": len(tails),
        "hosts": len(recording.sites),
        "share_waited": float(waited.mean()),
        "share_settled_of_all": recording.settled_share,
        "share_own_host": float(own.mean()),
        "share_own_host_of_new": float(own[~waited].mean()),
        "other_hosts_a_page": len(elsewhere) / recording.pages,
        "links_leading_of_waited": float(np.array(recording.leads)[waited].mean()),
        "zipf_of_links_by_host": steepness([len(site.tails) for site in recording.sites]),
        "zipf_of_pages_linking_to_a_host": steepness(recording.pages_linking),
        "path_bytes": _spread(tails),
        "host_bytes": _spread(names),
        "anchor_bytes": _spread(anchors),
        "anchors_empty": float(np.mean(np.array(anchors) == 0)),
        "worth_nats": _spread(rank_score.tolist()),
        "worth_distinct": len(np.unique(rank_score)) / len(rank_score),
        "evidence_distinct_rows": len(np.unique(rows, axis=0)) / len(rows),
        "features": {
            name: {
                "zeros": float((column == 0.0).mean()),
                "distinct": len(np.unique(column)),
                **_spread(column.tolist()),
            }
            for name, column in zip(recording.feature_names, rows.T, strict=True)
        },
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    low, middle, high, most = np.quantile(values, (0.0, 0.5, 0.99, 1.0)).tolist()
    return {"mean": float(np.mean(values)), "min": low, "median": middle, "p99": high, "max": most}
