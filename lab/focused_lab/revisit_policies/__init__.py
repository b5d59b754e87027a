"""Revisit policies of the literature, behind :class:`focused.revisit.policy.RevisitPolicy`."""
