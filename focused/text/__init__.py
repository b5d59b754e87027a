"""Tokens, word hashes, shingles and content signatures."""
