"""Priors that ship with the library, plain JSON; see :mod:`focused.link_scoring.linear_model`."""
