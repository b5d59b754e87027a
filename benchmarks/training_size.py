"""Time and memory of training on very many pages.

``python benchmarks/training_size.py`` generates pages with the doc web's word frequencies and rate
of new words, trains on 10,000 and on 100,000 of them, each in its own process, and prints pages per
second, that as a share of tokenising alone, and peak memory. The table goes into
``benchmarks/results/classifier/``.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pandas as pd
from estimator_harvest import markdown
from harvest import ROOT
from numpy.typing import NDArray

from focused.classifier.estimators import TrainingOptions
from focused.classifier.sample_texts import SampleWords, gather_samples
from focused.classifier.topic_training import fit_classifier
from focused.directory.directory_entry import DirectoryEntry
from focused.directory.sample_set import SampleSet
from focused.text.documents import page_words
from focused.topic import ESTIMATORS
from focused.web.page import Page

_WORDS = 60_000
_PAGE_WORDS = 800
_TOPICS = 40
_TOPIC_WORDS = 300
_NEW_WORDS = 0.004
"""Share of a page's words that occur nowhere else, as names and misspellings do."""


class MadeUpPages:
    """Generated pages with Zipf-distributed words, each of one of forty topics; deterministic by
    number.
    """

    def __init__(self) -> None:
        rng = random.Random(1)
        lengths = [rng.randint(3, 11) for _ in range(_WORDS)]
        self._words = np.array(["".join(rng.choices(ascii_lowercase, k=n)) for n in lengths])
        shares = 1.0 / (np.arange(_WORDS) + 10.0)
        self._upto = np.cumsum(shares / shares.sum())

    def page(self, number: int) -> Page:
        """Page ``number``; its topic is ``number % 40``."""
        rng = np.random.default_rng(number)
        common = self._words[np.searchsorted(self._upto, rng.random(_PAGE_WORDS))]
        first = 500 + (number % _TOPICS) * _TOPIC_WORDS
        own = self._words[first + rng.integers(0, _TOPIC_WORDS, _PAGE_WORDS // 20)]
        new = [_letters(rng) for _ in range(int(_PAGE_WORDS * _NEW_WORDS))]
        text = rng.permutation(np.concatenate([common, own, new]))
        return Page(url_of(number), title=" ".join(own[:3]), text=" ".join(text))


def _letters(rng: np.random.Generator) -> str:
    return "".join(map(chr, rng.integers(97, 123, 9)))


def url_of(number: int) -> str:
    """Five pages per host."""
    return f"https://host{number // 5}.example/{number}"


def main() -> int:
    """Train in processes of their own; write and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", default="10000,100000", help="numbers, with commas between")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/classifier"))
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        print(",".join(f"{figure:.4g}" for figure in _measured(options.train)))
        return 0
    os.chdir(ROOT)
    rows = [_of_process(int(pages)) for pages in options.pages.split(",")]
    table = pd.DataFrame(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    text = (
        f"# Training on very many pages\n\nBy `benchmarks/training_size.py`.\n\n{markdown(table)}\n"
    )
    (options.out / "training-size.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _of_process(pages: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--train", str(pages)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tokenising_s, training_s, peak_mb, before_mb, auc = map(float, output.split(","))
    return {
        "pages": pages,
        "tokenising_pages_per_s": pages / tokenising_s,
        "training_pages_per_s": pages / training_s,
        "times_tokenising": training_s / tokenising_s,
        "peak_mb": peak_mb,
        "of_which_before_mb": before_mb,
        "auc": auc,
    }


def _measured(pages: int) -> Sequence[float]:
    """CPU seconds of tokenising and of training, peak memory after and before, validation AUC."""
    web = MadeUpPages()
    listed = SampleSet(
        tuple(DirectoryEntry(f"Top/{n % _TOPICS}", url_of(n)) for n in range(pages)),
        tuple(n % _TOPICS == 0 for n in range(pages)),
    )
    sample = range(0, pages, max(pages // 2_000, 1))
    making_s, tokenising_s = _per_page(web, sample)
    before_mb = _peak_mb()
    began_s = time.process_time()
    sample_words = SampleWords()
    samples = gather_samples(
        listed, lambda url: web.page(int(url.rpartition("/")[2])), sample_words
    )
    fitted = fit_classifier(samples, sample_words, TrainingOptions(ESTIMATORS[0]))
    training_s = time.process_time() - began_s - making_s * pages
    peak_mb = _peak_mb()
    auc = fitted.trial.calibrated.auc
    return tokenising_s * pages, training_s, peak_mb, before_mb, auc


def _per_page(web: MadeUpPages, numbers: Sequence[int]) -> NDArray[np.float64]:
    """CPU seconds per page of generating one, and of tokenising it."""
    spent_s = np.zeros(2)
    for number in numbers:
        spent_s[0] -= time.process_time()
        page = web.page(number)
        now_s = time.process_time()
        page_words(page)
        spent_s += now_s, time.process_time() - now_s
    return np.asarray(spent_s / len(numbers))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    sys.exit(main())
