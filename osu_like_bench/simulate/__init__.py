"""Simulation of collectives at large scale without a cluster: topompi's schedules, and those of other MPI libraries.

An arena is a simulated network on which schedules are timed. ``FlowArena`` uses ``topompi.netsim`` and topompi's models
of the libraries; ``Arena`` lets SimGrid replay schedules, with SimGrid's own copies of the libraries' choices. A
program needs only one of them::

    with Arena(network_of(interface)) as arena:
        ours = arena.time(make("alltoall", "shift", arena.network), block_bytes=262144)
        theirs = arena.peer("mvapich2", "alltoall", 262144)
        least = arena.bound("alltoall", 262144)

``time`` (of a schedule) and ``peer`` (of another library) return seconds (float) or a ``Failure`` with the reason why
there are none; ``Arena.schedule`` makes an algorithm's schedule, cut into whole blocks. Results are cached under
``cache.folder()``, by everything that determines them.

``platform`` turns a network into SimGrid's platform, ``background`` subtracts the bandwidth that a second job uses,
``smpi`` runs the simulator, ``peers`` writes the traces of the other libraries; ``study``, ``table``, ``drawing`` and
``cli`` are ``python -m osu_like_bench simulate``.
"""

from .background import Background
from .flowarena import FlowArena
from .peers import PEERS
from .replay import Arena, Failure

__all__ = ["PEERS", "Arena", "Background", "Failure", "FlowArena"]
