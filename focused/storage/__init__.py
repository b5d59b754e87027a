"""Durable storage: LMDB environment, tables, write-ahead journal, checksums."""
