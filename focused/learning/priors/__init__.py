"""Priors that ship with the library, plain JSON; see :mod:`focused.learning.link_prior`."""
