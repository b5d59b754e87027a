"""Deduplication: exact and near-duplicates, canonical URLs, mirrors, ignorable URL parts."""
