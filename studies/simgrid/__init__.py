"""SimGrid, a simulator of others, which replays schedules: the oracle of tests of flows, and the arena of a study.

``platform`` writes a network as SimGrid's platform, ``traces`` a schedule, ``peers`` the collectives of other MPI
libraries, of which SimGrid has copies; ``smpi`` runs the simulator, and ``arena`` puts them together.
"""

from .arena import Arena
from .peers import PEERS

__all__ = ["PEERS", "Arena"]
