"""Assertions of the suites tell what they compared, as those of test modules do."""

import pytest

for part in ("links", "turns", "hopes", "deaths"):
    pytest.register_assert_rewrite(f"tests.contracts.{part}")
