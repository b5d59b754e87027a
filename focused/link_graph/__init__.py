"""The link graph of crawls: a connectivity server for pages and hosts, and measures on it."""
