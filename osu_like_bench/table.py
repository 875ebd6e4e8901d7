"""The table of all benchmarks by name, which the command line, its help, the documentation and the tests use."""

from __future__ import annotations

from dataclasses import dataclass

from .barrier import Barrier
from .neighbours import NEIGHBOURS
from .operations import COLLECTIVES, Operation
from .overlapped import overlapped
from .pairs import PAIRS
from .persistent import persistent
from .reductions import REDUCTIONS
from .remote import REMOTE

__all__ = ["ABSENT", "GROUPS", "OPERATIONS", "Family"]

BLOCKING = {**COLLECTIVES, **REDUCTIONS, "barrier": Barrier}


@dataclass(frozen=True)
class Family:
    """A group of similar operations.

    :param title: title in the documentation.
    :param kinds: class of each operation by the name of its benchmark, which is OMB's without ``osu_``.
    """

    title: str
    kinds: dict[str, type[Operation]]


GROUPS = (
    Family("blocking collectives", BLOCKING),
    Family("non-blocking collectives", {f"i{name}": overlapped(kind) for name, kind in BLOCKING.items()}),
    Family("persistent collectives", {f"{name}_persistent": persistent(kind) for name, kind in BLOCKING.items()}),
    Family("neighbourhood collectives", NEIGHBOURS),
    Family(
        "non-blocking neighbourhood collectives", {f"i{name}": overlapped(kind) for name, kind in NEIGHBOURS.items()}
    ),
    Family("point-to-point", PAIRS),
    Family("one-sided", dict(REMOTE)),
)
OPERATIONS = {name: kind for group in GROUPS for name, kind in group.kinds.items()}

# OMB 7.5's benchmarks that are not here, with the reason.
ABSENT = {
    "latency_mt": "threads of Python take turns: it would measure the interpreter",
    "latency_mp": "processes that a rank forks; MPI programs in Python do not fork",
    "partitioned_latency": "Open MPI 5.0.11 waits there for ever for ranks beside the two, which have no part in it",
    "bw_fan_in": "senders on other hosts to one: `gather` with large blocks, whose links topompi knows",
    "bw_fan_out": "one sender to other hosts: `scatter` with large blocks",
    "hello": "start-up of C programs; Python's imports take most of it here",
    "init": "start-up of C programs; Python's imports take most of it here",
    "oshm_*, upc_*, upcxx_*": "other programming models than MPI",
    "xccl_*, nccl_*": "collectives of devices; buffers lie in host memory here (`-d cuda` is refused)",
}
