"""What every :class:`focused.frontier.interface.Frontier` must keep to.

A module of tests takes them all in with ``import *``, and says in a fixture
``life`` how its frontiers are made, die and come back
(:class:`tests.support.frontier_lives.Life`).
"""

# ruff: noqa: F403 -- all tests and fixtures of the parts, whatever their names
from tests.contracts.crashes import *
from tests.contracts.exploration import *
from tests.contracts.lifecycle import *
from tests.contracts.links import *
from tests.contracts.scheduling import *
