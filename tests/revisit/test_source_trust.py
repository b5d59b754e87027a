"""Trust in sources of change signals, by what visits find."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.revisit.source_trust import SourceTrust

HAZARD = 0.3
NOBODY = SourceTrust()


def proven(alarms: int = 20, quiet: int = 100) -> SourceTrust:
    """A source that announced changes, and was silent of pages that had not changed."""
    trust = SourceTrust()
    for _ in range(alarms):
        trust = trust.after_alarm(HAZARD, changed=True)
    for _ in range(quiet):
        trust = silent(trust, changed=False)
    return trust


def silent(trust: SourceTrust, *, changed: bool) -> SourceTrust:
    return trust.after_silence(trust.silence(NOBODY), HAZARD, 0.0, changed=changed)


def test_the_silence_of_a_new_source_says_nothing():
    assert NOBODY.silence(NOBODY) == 1.0


def test_a_source_whose_announcements_come_true_is_believed():
    assert proven().silence(NOBODY) < 0.25
    assert proven().alarms(NOBODY) < 0.05


def test_a_source_that_never_announces_is_not_believed_however_quiet_its_pages_are():
    assert proven(alarms=0, quiet=500).silence(NOBODY) == 1.0


def test_a_source_that_announces_everything_changes_nothing():
    trust = SourceTrust()
    for number in range(200):
        trust = trust.after_alarm(HAZARD, changed=number % 4 == 0)  # as often as expected
    assert trust.alarms(NOBODY) > 0.9
    assert trust.silence(NOBODY) > 0.9


def test_a_few_contradictions_end_the_trust_in_silence():
    trust = proven()
    for _ in range(4):
        trust = silent(trust, changed=True)
    assert trust.losses == 1
    assert trust.silence(NOBODY) > 0.9


def test_trust_that_was_lost_is_earned_more_slowly():
    lost = proven()._replace(missed=0.0, expected_missed=0.0, confirmed=0.0, losses=2.0)
    for trust in (first := lost._replace(losses=0.0), lost):
        assert trust.silence(NOBODY) == 1.0
    for _ in range(30):
        first, lost = (each.after_alarm(HAZARD, changed=True) for each in (first, lost))
        first, lost = (silent(each, changed=False) for each in (first, lost))
    assert first.silence(NOBODY) < lost.silence(NOBODY) < 1.0


def test_changes_after_the_last_reading_are_not_held_against_the_source():
    trust = proven()
    for _ in range(20):
        trust = trust.after_silence(0.05, 0.1, 3.0, changed=True)
    assert trust.losses == 0
    assert trust.missed < 1.0


def test_a_new_source_starts_from_the_record_of_all():
    common = proven(alarms=100, quiet=300)
    liar = SourceTrust()
    for _ in range(300):
        liar = liar.after_alarm(HAZARD, changed=False)
    one_alarm = SourceTrust().after_alarm(HAZARD, changed=True)
    assert one_alarm.silence(common) < one_alarm.silence(NOBODY)
    assert NOBODY.alarms(liar) > 0.9 > 0.3 >= NOBODY.alarms(common)


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.booleans(), st.floats(0, 50), st.floats(0, 50), st.floats(0.01, 1)
        ),
        max_size=60,
    )
)
def test_factors_are_in_range_and_records_keep_them(visits):
    trust = SourceTrust()
    for announced, changed, told, untold, silence in visits:
        if announced:
            trust = trust.after_alarm(told, changed=changed)
        else:
            trust = trust.after_silence(silence, told, untold, changed=changed)
        assert 0 < trust.silence(NOBODY) <= 1
        assert 0 < trust.alarms(NOBODY) <= 1
        assert 0 <= trust.recall <= 1
    assert SourceTrust.unpack(trust.pack()) == pytest.approx(trust, rel=1e-5)
