"""The embedding table, its card and its licence."""
