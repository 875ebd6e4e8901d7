"""Which rank goes where: pure data in, pure data out, no MPI.

Where things are: ``graph`` who sends how much to whom, ``machine`` hosts, slots and ``distances`` between them,
``mapping`` a rank's slot and a slot's rank, ``evaluate`` what a mapping costs; ``mappers`` finds mappings with
``partition`` beneath; ``readers`` reads communication graphs, ``rankfiles`` writes and reads what launchers take;
``placement`` has the launchers' own plain placements.
"""

from .evaluate import Evaluation, evaluate
from .graph import CommunicationGraph
from .machine import Machine
from .mappers import MAPPERS
from .mappers.portfolio import best
from .mapping import Mapping
from .placement import place
from .readers import read_graph

__all__ = [
    "MAPPERS",
    "CommunicationGraph",
    "Evaluation",
    "Machine",
    "Mapping",
    "best",
    "evaluate",
    "place",
    "read_graph",
]
