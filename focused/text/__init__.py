"""Text processing: tokens, word hashes, document vectors and content signatures."""
