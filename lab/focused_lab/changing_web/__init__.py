"""Recorded webs whose pages change by change histories."""
