"""Let pytest rewrite the assertions of the suites."""

import pytest

for part in ("links", "turns", "hopes", "deaths"):
    pytest.register_assert_rewrite(f"tests.contracts.{part}")
