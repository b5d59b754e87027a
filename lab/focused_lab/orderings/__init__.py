"""Orderings of the literature, a file each, and ablations of our own.

Each file has a function ``make_policy(inputs) -> Policy`` and names its source; those without state
are in :mod:`stateless`. Entry points of the group ``focused.orderings`` let topic files and the
command line choose them.
"""
