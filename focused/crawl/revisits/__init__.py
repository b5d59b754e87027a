"""Revisits: fetch the pages of the collection again and detect what changed."""
