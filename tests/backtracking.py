"""Finds regular expressions that backtrack in more than linear time, by their automata.

An expression becomes a Glushkov automaton: a state for each character of it. Two findings:

- *nested*: a loop that a text can pass in two ways, as ``(a+)+``; exponential.
- *adjacent*: two loops that can share a text, as ``a*b?a*``; quadratic or worse.

Possessive loops and atomic groups give nothing back, so they are never the first of two loops.
Lookarounds, and the bodies of groups that give nothing back, are checked by themselves.
"""

import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MANY = 50
"""A loop of at most so many rounds is bounded."""
_COPIES = 3
_ALPHABET = [*map(chr, range(256)), "ı", "ſ", "Ω", "٣", "\u2028", "中", "\ud800", "\U0001f40b"]
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


@dataclass(slots=True)
class _Part:
    """A part of an expression: whether it matches nothing, and its first and last states."""

    is_nullable: bool = True
    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)


class Automaton:
    """The Glushkov automaton of an expression; states are numbers."""

    def __init__(self, parsed: Any, flags: int) -> None:
        self._flags = flags
        self._is_bytes = not flags & re.UNICODE
        self.masks: list[int] = []
        self.is_fixed: list[bool] = []
        self.edges: Counter[tuple[int, int]] = Counter()
        self.bodies: list[Any] = []
        """Parts to be checked by themselves."""
        self._fixed = 0
        self._sequence(parsed)

    def _sequence(self, items: Any) -> _Part:
        whole = _Part()
        for item in items:
            whole = self._join(whole, self._item(*item))
        return whole

    def _join(self, one: _Part, other: _Part) -> _Part:
        self._connect(one.last, other.first)
        return _Part(
            one.is_nullable and other.is_nullable,
            one.first | other.first if one.is_nullable else one.first,
            one.last | other.last if other.is_nullable else other.last,
        )

    def _connect(self, last: set[int], first: set[int]) -> None:
        self.edges.update((one, other) for one in last for other in first)

    def _item(self, code: Any, value: Any) -> _Part:
        if code in _REPEATS:
            return self._repeat(code, *value)
        if code is codes.SUBPATTERN:
            return self._sequence(value[3])
        if code is codes.BRANCH:
            return self._branch(value[1])
        if code is codes.ATOMIC_GROUP:
            return self._unyielding(value)
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            self.bodies.append(value[1])
            return _Part()
        if code is codes.GROUPREF_EXISTS:
            return self._branch([each for each in value[1:] if each is not None])
        if code in (codes.AT, codes.GROUPREF):
            return _Part()
        return self._character(code, value)

    def _branch(self, branches: Any) -> _Part:
        whole = _Part(is_nullable=False)
        for branch in branches:
            part = self._sequence(branch)
            whole.is_nullable |= part.is_nullable
            whole.first |= part.first
            whole.last |= part.last
        return whole

    def _unyielding(self, body: Any) -> _Part:
        self.bodies.append(body)
        self._fixed += 1
        part = self._sequence(body)
        self._fixed -= 1
        return part

    def _repeat(self, code: Any, least: int, most: int, body: Any) -> _Part:
        if code is codes.POSSESSIVE_REPEAT:
            self.bodies.append(body)
            self._fixed += 1
        whole = _Part()
        copies = 1 if most > MANY else min(most, _COPIES)
        for number in range(copies):
            part = self._sequence(body)
            part.is_nullable |= number >= least or least == 0
            if most > MANY:
                self._connect(part.last, part.first)
            whole = self._join(whole, part)
        if code is codes.POSSESSIVE_REPEAT:
            self._fixed -= 1
        return whole

    def _character(self, code: Any, value: Any) -> _Part:
        number = len(self.masks)
        self.masks.append(self._mask(code, value))
        self.is_fixed.append(self._fixed > 0)
        return _Part(False, {number}, {number})

    def _mask(self, code: Any, value: Any) -> int:
        return _mask_of(repr((code, value)), (code, value), self._flags, self._is_bytes)

    def loops(self) -> dict[int, frozenset[int]]:
        """Return for each state on a loop the states on loops with it."""
        after = self.reachable()
        return {
            state: frozenset(each for each in after[state] if state in after[each])
            for state in range(len(self.masks))
            if state in after[state]
        }

    def reachable(self) -> list[set[int]]:
        """Return for each state the states that can follow it, sooner or later."""
        after = [self.next_states(state) for state in range(len(self.masks))]
        found = []
        for state in range(len(self.masks)):
            seen: set[int] = set()
            waiting = [state]
            while waiting:
                for each in after[waiting.pop()] - seen:
                    seen.add(each)
                    waiting.append(each)
            found.append(seen)
        return found

    def next_states(self, state: int) -> set[int]:
        return {other for one, other in self.edges if one == state}


_masks: dict[tuple[str, int], int] = {}


def _mask_of(key: str, item: Any, flags: int, is_bytes: bool) -> int:
    """Return the characters of the alphabet that an item matches, as bits."""
    known = _masks.get((key, flags))
    if known is None:
        state = parser.State()
        state.str = b"" if is_bytes else ""
        state.flags = flags
        pattern = compiler.compile(parser.SubPattern(state, [item]), flags)
        known = 0
        for bit, char in enumerate(_ALPHABET[:256] if is_bytes else _ALPHABET):
            if pattern.fullmatch(bytes([ord(char)]) if is_bytes else char):
                known |= 1 << bit
        _masks[key, flags] = known
    return known


def ambiguities(pattern: re.Pattern[Any]) -> list[str]:
    """Return ``nested`` or ``adjacent`` for an expression that may backtrack for long.

    As if the whole text must match: where it need not, the last loop never fails.
    """
    parsed = parser.parse(pattern.pattern, pattern.flags)
    return sorted(set(_findings(parsed, pattern.flags)))


def _findings(parsed: Any, flags: int) -> Iterator[str]:
    automaton = Automaton(parsed, flags)
    loops = automaton.loops()
    after = {state: automaton.next_states(state) for state in range(len(automaton.masks))}
    reachable = automaton.reachable()
    for state, mates in loops.items():
        if automaton.is_fixed[state]:
            continue
        if _passes_twice(automaton, after, state, mates):
            yield "nested"
        for other, others in loops.items():
            if (
                other != state
                and other in reachable[state]
                and _shares(automaton, after, (state, mates), (other, others))
            ):
                yield "adjacent"
    for body in automaton.bodies:
        yield from _findings(body, flags)


def _passes_twice(
    automaton: Automaton, after: dict[int, set[int]], state: int, mates: frozenset[int]
) -> bool:
    """Whether one text leads from a state back to it by two ways."""
    seen: set[tuple[int, int, bool]] = set()
    waiting = [(state, state, False)]
    while waiting:
        one, other, differ = waiting.pop()
        for a in after[one] & mates:
            for b in after[other] & mates:
                if not automaton.masks[a] & automaton.masks[b]:
                    continue
                is_double = one == other and a == b and automaton.edges[one, a] > 1
                found = (a, b, differ or a != b or is_double)
                if found[2] and a == b == state:
                    return True
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
    return False


def _shares(
    automaton: Automaton,
    after: dict[int, set[int]],
    first: tuple[int, frozenset[int]],
    second: tuple[int, frozenset[int]],
) -> bool:
    """Whether one text leads through either loop, and from the first to the second."""
    (state, mates), (other, others) = first, second
    masks = automaton.masks
    seen: set[tuple[int, int, int]] = set()
    waiting = [(state, state, other)]
    while waiting:
        one, between, two = waiting.pop()
        for a in after[one] & mates:
            for c in after[two] & others:
                shared = masks[a] & masks[c]
                if not shared:
                    continue
                for b in after[between]:
                    if not shared & masks[b] or (a, b, c) in seen:
                        continue
                    if (a, b, c) == (state, other, other):
                        return True
                    seen.add((a, b, c))
                    waiting.append((a, b, c))
    return False
