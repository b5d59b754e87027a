"""Trust in a source of change signals, by its announced and unannounced changes.

A source, such as a host's sitemaps, lists pages and announces some of them as changed. Its trust
has two sides, each a ratio of what visits found and what the revisit policy expected:

- *silence*: changes of pages that were listed and not announced. The ratio multiplies the hazard
  of such pages: 0 for a source that announces every change, 1 if its silence says nothing.
- *alarms*: announced pages that had not changed. The ratio multiplies the probability that an
  announced page is as before: 0 for a source that is always right, 1 for one that announces
  everything.

The ratios do not depend on which pages are visited, so visiting by signals does not distort them. A
new source starts from the ratios of all sources, but its silence is believed only as far as visits
have confirmed its announcements. Counts decay. A source whose silence visits contradict loses its
trust at once, by a cumulative sum test, and earns it more slowly again.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple, Self

_PRIOR_CHANGES = 2.0
"""A source's silence is judged as if it had shown so many expected changes like all sources."""
_PRIOR_ALARMS = 2.0
"""The same for announced pages."""
_PROOF = 1.0
"""So many confirmed announcements earn half of the trust that the record of silence allows."""
_FIRST_ALARMS = 0.3
"""Ratio of alarms of the first source."""
MEMORY, COMMON_MEMORY = 40.0, 400.0
"""Memory of one source, and of the record of all."""
_LEAST = 0.02
_MAX_DOUBT = 4.0
"""Evidence, in nats, that a source has gone wrong, at which its trust is lost."""
_LARGEST_HAZARD = 5.0
_MIN_HAZARD = 1e-6
_record = struct.Struct("<8f")


class SourceTrust(NamedTuple):
    """The record of one source, or of all; counts decay."""

    missed: float = 0.0
    """Listed pages that were not announced and had changed."""
    expected_missed: float = 0.0
    """Changes of such pages that the policy expected."""
    unchanged: float = 0.0
    """Announced pages that had not changed."""
    expected_unchanged: float = 0.0
    """Announced pages that had not changed, as the policy expected."""
    confirmed: float = 0.0
    """Announced changes that visits confirmed, beyond what the policy expected."""
    doubt: float = 0.0
    """Evidence of the last visits that the silence says nothing, in nats."""
    losses: float = 0.0
    """How often the source lost its trust."""
    memory: float = MEMORY
    """Counts decay by 1/e in so many expected changes or alarms."""

    @classmethod
    def unpack(cls, record: bytes) -> SourceTrust:
        """Read a record."""
        return cls(*_record.unpack(record))

    def pack(self) -> bytes:
        """Return the record of 32 bytes."""
        return _record.pack(*self)

    def silence(self, common: SourceTrust) -> float:
        """Return the factor of the hazard of listed pages that are not announced, in (0, 1].

        ``common`` is the record of all sources.
        """
        prior = (common.missed + _PRIOR_CHANGES) / (common.expected_missed + _PRIOR_CHANGES)
        strength = _PRIOR_CHANGES * (1.0 + self.losses)
        if self.losses:
            prior = 1.0
        ratio = (self.missed + strength * min(prior, 1.0)) / (self.expected_missed + strength)
        # Without announcements that came true, silence says nothing.
        proven = self.confirmed / (self.confirmed + _PROOF)
        return min(max(1.0 - proven * (1.0 - ratio), _LEAST), 1.0)

    def alarms(self, common: SourceTrust) -> float:
        """Return the factor of the probability that an announced page is as before, in (0, 1]."""
        prior = (common.unchanged + _PRIOR_ALARMS * _FIRST_ALARMS) / (
            common.expected_unchanged + _PRIOR_ALARMS
        )
        ratio = (self.unchanged + _PRIOR_ALARMS * min(prior, 1.0)) / (
            self.expected_unchanged + _PRIOR_ALARMS
        )
        return min(max(ratio, _LEAST), 1.0)

    @property
    def recall(self) -> float:
        """The share of changes that the source announces; 1 for one without evidence."""
        return 1.0 - min(self.missed / (self.expected_missed + _PRIOR_CHANGES), 1.0)

    def after_silence(self, silence: float, told: float, untold: float, *, changed: bool) -> Self:
        """Learn from the visit of a page that was listed and not announced.

        ``told`` is the number of changes that the policy expected until the source was last read,
        ``untold`` that since then; ``silence`` is the factor that was assumed.
        """
        told = min(max(told, _MIN_HAZARD), _LARGEST_HAZARD)
        expected = -math.expm1(-told)
        # The probability that a change came before the last reading.
        blame = silence * told / (silence * told + untold) if changed else 0.0
        evidence = -(1.0 - silence) * told
        if changed:
            evidence = blame * math.log(expected / -math.expm1(-silence * told))
        doubt = max(self.doubt + evidence, 0.0)
        if doubt > _MAX_DOUBT:
            return self._replace(
                missed=0.0,
                expected_missed=0.0,
                confirmed=0.0,
                doubt=0.0,
                losses=self.losses + 1.0,
            )
        left = math.exp(-expected / self.memory)
        return self._replace(
            missed=left * self.missed + blame,
            expected_missed=left * self.expected_missed + expected,
            confirmed=left * self.confirmed,
            doubt=doubt,
        )

    def after_alarm(self, hazard: float, *, changed: bool) -> Self:
        """Learn from the visit of a page that was announced."""
        expected = math.exp(-hazard)
        left = math.exp(-expected / self.memory)
        return self._replace(
            unchanged=left * self.unchanged + (not changed),
            expected_unchanged=left * self.expected_unchanged + expected,
            confirmed=max(left * self.confirmed + expected - (not changed), 0.0),
        )
