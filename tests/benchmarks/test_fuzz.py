"""The fuzzer: deterministic cases, and stored findings."""

import random
from itertools import islice

import fuzz
import pytest
from fuzz_mutations import MAX_CASE_BYTES, SEEDS, mutated

pytestmark = pytest.mark.long


def cases(seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return list(islice(iter(lambda: mutated(rng, SEEDS), None), 300))


def test_a_seed_makes_the_same_bounded_cases():
    assert cases(1) == cases(1) != cases(2)
    assert max(map(len, cases(1))) <= MAX_CASE_BYTES
    assert len(set(cases(1))) > 250


def test_a_case_that_raises_is_kept_with_its_bytes(tmp_path):
    def breaks(case: bytes, rng: random.Random) -> None:
        raise LookupError(case.decode())

    findings = fuzz.Findings(tmp_path, {"broken": breaks})
    findings.run("broken", b"a case", random.Random(1))
    assert findings.found == [f"broken: LookupError: a case: {tmp_path / 'broken-0.bin'}"]
    assert (tmp_path / "broken-0.bin").read_bytes() == b"a case"


def test_a_case_that_takes_long_is_a_finding(tmp_path):
    findings = fuzz.Findings(tmp_path, max_cpu_s=-1.0)
    findings.run("url", b"http://a.com/", random.Random(1))
    assert "CPU time" in findings.found[0]


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_three_hundred_broken_seeds_are_read(name, tmp_path):
    findings = fuzz.Findings(tmp_path)
    for case in cases(3):
        findings.run(name, case, random.Random(3))
    assert findings.found == []
