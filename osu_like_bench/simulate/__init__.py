"""Collectives at paper scale without a cluster: our schedules, and what other libraries would run.

``FlowArena`` takes ``topompi.netsim`` and our models of libraries; ``Arena`` has SimGrid replay schedules and its own
copies of what other libraries do. Either is the whole of it for a program::

    with Arena(network_of(interface)) as arena:
        ours = arena.time(make("alltoall", "shift", arena.network), block_bytes=262144)
        theirs = arena.peer("mvapich2", "alltoall", 262144)
        least = arena.bound("alltoall", 262144)

``time`` and ``peer`` give seconds (float) or a ``Failure`` that says why there are none; ``Arena.schedule`` makes a
schedule of an algorithm cut into whole blocks. Results are kept by content under ``cache.folder()``.

``platform`` turns a network into SimGrid's platform, ``background`` takes from it what a second job uses, ``smpi`` runs
the simulator, ``peers`` writes the traces of the other libraries; ``study``, ``table``, ``drawing`` and ``cli`` are
``python -m osu_like_bench simulate``.
"""

from .background import Background
from .flowarena import FlowArena
from .peers import PEERS
from .replay import Arena, Failure

__all__ = ["PEERS", "Arena", "Background", "Failure", "FlowArena"]
