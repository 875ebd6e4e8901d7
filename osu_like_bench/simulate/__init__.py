"""Simulation of collectives at large scale without a cluster: topompi's schedules, and those of other MPI libraries.

An arena is a simulated network on which schedules are timed. ``FlowArena`` uses ``topompi.netsim`` and topompi's models
of the libraries::

    with FlowArena(network_of(interface)) as arena:
        ours = arena.time(make("alltoall", "shift", arena.network), block_bytes=262144)
        theirs = arena.peer("openmpi", "alltoall", 262144)
        least = arena.bound("alltoall", 262144)

``time`` (of a schedule) and ``peer`` (of another library) return seconds (float) or a ``Failure`` with the reason why
there are none; ``FlowArena.schedule`` makes an algorithm's schedule, cut into whole blocks.

``ground`` has the base class of arenas, ``background`` subtracts the bandwidth that a second job uses; ``study``,
``table``, ``drawing`` and ``cli`` are ``python -m osu_like_bench simulate``.
"""

from .background import Background
from .flowarena import FlowArena
from .ground import Failure

__all__ = ["Background", "Failure", "FlowArena"]
