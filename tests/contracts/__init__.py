"""Contract suites: tests that every implementation of a protocol must pass."""
