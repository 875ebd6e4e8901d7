"""Simulation of collectives at large scale without a cluster: our schedules, and those of other libraries.

``FlowArena`` uses ``topompi.netsim`` and our models of the libraries; ``Arena`` has SimGrid replay schedules, with
SimGrid's own copies of the libraries' choices. A program needs one of them only::

    with Arena(network_of(interface)) as arena:
        ours = arena.time(make("alltoall", "shift", arena.network), block_bytes=262144)
        theirs = arena.peer("mvapich2", "alltoall", 262144)
        least = arena.bound("alltoall", 262144)

``time`` and ``peer`` return seconds (float) or a ``Failure`` with the reason why there are none; ``Arena.schedule``
makes an algorithm's schedule, cut into whole blocks. Results are cached by content under ``cache.folder()``.

``platform`` turns a network into SimGrid's platform, ``background`` subtracts the bandwidth that a second job uses,
``smpi`` runs the simulator, ``peers`` writes the traces of the other libraries; ``study``, ``table``, ``drawing`` and
``cli`` are ``python -m osu_like_bench simulate``.
"""

from .background import Background
from .flowarena import FlowArena
from .peers import PEERS
from .replay import Arena, Failure

__all__ = ["PEERS", "Arena", "Background", "Failure", "FlowArena"]
