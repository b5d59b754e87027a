"""Time and memory of training a classifier on many pages.

``python benchmarks/training_size.py --pages 20000`` trains on generated pages with the word
frequencies of the documentation web and its rate of new words, and prints the seconds of CPU,
without their generation, and the peak of memory.
"""

from __future__ import annotations

import argparse
import random
import time
from string import ascii_lowercase

import numpy as np

from focused.classifier.estimators import TrainingOptions
from focused.classifier.sample_texts import SampleWords, gather_samples
from focused.classifier.topic_training import fit_classifier
from focused.directory import DirectoryEntry
from focused.directory.sample_set import SampleSet
from focused.topic import ESTIMATORS
from focused.web.page import Page
from focused_lab.run_measures import peak_mb

_WORDS = 60_000
_PAGE_WORDS = 800
_TOPICS = 40
_TOPIC_WORDS = 300
_NEW_WORDS = 0.004
"""Share of a page's words that occur nowhere else, as names and misspellings do."""


class GeneratedPages:
    """Pages of words with Zipf-distributed frequencies, each of one of forty topics.

    A page follows from its number; ``cpu_s`` is the time that all took.
    """

    def __init__(self) -> None:
        rng = random.Random(1)
        lengths = [rng.randint(3, 11) for _ in range(_WORDS)]
        self._words = np.array(["".join(rng.choices(ascii_lowercase, k=n)) for n in lengths])
        shares = 1.0 / (np.arange(_WORDS) + 10.0)
        self._cumulative_shares = np.cumsum(shares / shares.sum())
        self.cpu_s = 0.0

    def __call__(self, url: str) -> Page:
        """Return the page of a URL that ends with its number."""
        began_s = time.process_time()
        number = int(url.rpartition("/")[2])
        rng = np.random.default_rng(number)
        common = self._words[np.searchsorted(self._cumulative_shares, rng.random(_PAGE_WORDS))]
        first = 500 + (number % _TOPICS) * _TOPIC_WORDS
        own = self._words[first + rng.integers(0, _TOPIC_WORDS, _PAGE_WORDS // 20)]
        new = [
            "".join(map(chr, rng.integers(97, 123, 9)))
            for _ in range(round(_PAGE_WORDS * _NEW_WORDS))
        ]
        text = rng.permutation(np.concatenate([common, own, new]))
        page = Page(url, title=" ".join(own[:3]), text=" ".join(text))
        self.cpu_s += time.process_time() - began_s
        return page


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    count = parser.parse_args().pages
    # Five pages of a host, one topic of forty is the good one.
    urls = [f"https://host{number // 5}.example/{number}" for number in range(count)]
    entries = tuple(DirectoryEntry(f"Top/{n % _TOPICS}", url) for n, url in enumerate(urls))
    listed = SampleSet(entries, tuple(n % _TOPICS == 0 for n in range(count)))
    pages = GeneratedPages()
    began_s = time.process_time()
    sample_words = SampleWords()
    samples = gather_samples(listed, pages, sample_words)
    fit_classifier(samples, sample_words, TrainingOptions(ESTIMATORS[0]))
    cpu_s = time.process_time() - began_s - pages.cpu_s
    print(f"{count:,} pages: {cpu_s:,.0f} s of CPU, peak memory {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
