"""The samples that a topic learns from: its directory, read, put on sides and drawn."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from focused.directory.digest import content_digest
from focused.directory.dmoz_rdf import symbolic_links
from focused.directory.passed_over import PassedOver
from focused.directory.reading import read_entries, structure_dumps
from focused.directory.sides import SampleSet, is_below, sample_set
from focused.topic import MAX_SAMPLES, Training


def training_samples(training: Training) -> SampleSet:
    """The topic's samples, at most ``training.max_samples`` a side.

    Where a DMOZ structure is at hand, what good categories list by a symbolic link is
    left out of the others: its editors take it for a part of the topic. Memory is
    bounded by what is drawn, not by the directory. The same directory gives the same
    draw, so that what was fetched is what is learned from. Raises as
    :func:`~focused.directory.reading.read_entries` and
    :func:`~focused.directory.sides.sample_set` do.
    """
    passed_over = PassedOver()
    linked = _linked_from_good(training, passed_over)
    listed = sample_set(
        read_entries(training.directory, passed_over),
        training.good,
        limit=training.max_samples,
        linked=linked,
        may_lack_good=bool(training.keywords),  # labels and the keywords stand in for them
    )
    return replace(listed, remarks=(*passed_over.remarks(), *_remarks(listed)))


def samples_digest(training: Training) -> str:
    """A digest of what the model is made from: directory and good list, and how
    many samples are drawn and whether with the background, where that is not usual."""
    digest = hashlib.sha256()
    for prefix in training.good:
        digest.update(b"good\0" + prefix.encode() + b"\0")
    if training.max_samples != MAX_SAMPLES:
        digest.update(b"max_samples\0%d\0" % training.max_samples)
    if not training.background:
        digest.update(b"no background\0")
    for path in training.directory:
        digest.update(b"file\0" + content_digest(path))
    return digest.hexdigest()


def _linked_from_good(training: Training, passed_over: PassedOver) -> frozenset[str]:
    return frozenset(
        target
        for dump in structure_dumps(training.directory)
        for source, target in symbolic_links(dump, passed_over)
        if any(is_below(source, good) for good in training.good)
    )


def _remarks(listed: SampleSet) -> list[str]:
    told = []
    if listed.left_out:
        kept = len(listed.entries)
        told.append(
            f"{kept:,} samples drawn by lot, {listed.left_out:,} left out (training.max_samples)"
        )
    if listed.between:
        told.append(f"{listed.between:,} samples on neither side: good categories link to them")
    return told
