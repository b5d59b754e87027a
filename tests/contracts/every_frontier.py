"""What every :class:`focused.frontier.interface.Frontier` must keep to.

A module of tests takes them all in with ``import *``, and says in a fixture
``life`` how its frontiers are made, die and come back
(:class:`tests.support.frontier_lives.Life`).
"""

# ruff: noqa: F403 -- all tests and fixtures of the parts, whatever their names
from tests.contracts.deaths import *
from tests.contracts.hopes import *
from tests.contracts.life import *
from tests.contracts.links import *
from tests.contracts.turns import *
