"""The MPI libraries that a job may run with, with settings that suit the emulation best.

With all settings except ``openmpi-polling``, ranks sleep while they wait. If sixteen waiting ranks polled on two
processors, they would delay the ranks that have work, and the processors would never be idle, so that their idle time
could not show whether they are the bottleneck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .network import CONTROL, DATA

__all__ = ["PEERS", "VARIABLES", "LibrarySettings"]


@dataclass(frozen=True)
class LibrarySettings:
    """An MPI library with settings.

    :param vendor: ``Open MPI`` or ``MPICH``, the library whose mpirun starts the job.
    :param what: description for tables and help.
    :param options: options of mpirun.
    :param environment: environment variables of the ranks.
    :param coordinates: True if the library reads the positions of ranks from a file that is written for it.
    """

    vendor: str
    what: str
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    coordinates: bool = False


def _mca(parameters: Mapping[str, str]) -> list[str]:
    return [word for name, value in parameters.items() for word in ("--mca", name, value)]


_PARAMETERS = {
    "pml": "ob1",
    "btl": "self,sm,tcp",
    "btl_tcp_if_include": DATA,
    "mpi_yield_when_idle": "1",
    "threads_pthreads_yield_strategy": "nanosleep",
    "threads_pthreads_nanosleep_time": "1000",
}
_OPEN_MPI = ("--allow-run-as-root", "--prtemca", "prte_if_include", CONTROL, *_mca(_PARAMETERS))

# UCX finds shared memory by the boot id, which is the same on all emulated hosts, so it is told to use TCP only.
_MPICH = {
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": DATA,
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
}
# The topology-aware algorithms of MPICH's user's guide: trees for broadcast, reduce and allreduce, all pipelined.
_TREES = {
    "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "pipelined_tree",
    "MPIR_CVAR_BCAST_TREE_TYPE": "topology_aware",
    "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "tree",
    "MPIR_CVAR_ALLREDUCE_TREE_TYPE": "topology_aware",
    "MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "nb",
    "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM": "tsp_tree",
    "MPIR_CVAR_IREDUCE_TREE_TYPE": "topology_aware",
}

# Waiting ranks that poll, for round trips: a sleeping rank notices a message about 50 us late, which would hide the
# latency of switches.
_POLLING = tuple("sched_yield" if word == "nanosleep" else word for word in _OPEN_MPI)

PEERS: Mapping[str, LibrarySettings] = {
    "openmpi": LibrarySettings("Open MPI", "Open MPI's defaults", _OPEN_MPI),
    "openmpi-polling": LibrarySettings(
        "Open MPI", "Open MPI whose waiting ranks poll, to measure round trips", _POLLING
    ),
    "han": LibrarySettings(
        "Open MPI",
        "Open MPI with HAN first, as its version 5 has by itself",
        (*_OPEN_MPI, *_mca({"coll_han_priority": "100"})),
    ),
    "mpich": LibrarySettings("MPICH", "MPICH's defaults", ("-iface", CONTROL), _MPICH),
    "mpich-topology": LibrarySettings(
        "MPICH", "MPICH's topology-aware trees", ("-iface", CONTROL), {**_MPICH, **_TREES}, coordinates=True
    ),
}

# The same settings as variables, for programs that Slurm starts. Hosts have a second interface, which passes no
# emulated link, and MPI libraries use all interfaces unless one is named.
VARIABLES: Mapping[str, str] = {
    **{f"OMPI_MCA_{name}": value for name, value in _PARAMETERS.items()},
    "OMPI_MCA_pml": "ob1,monitoring",  # so that programs can be recorded
    "PRTE_MCA_prte_if_include": CONTROL,
    **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
    **dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
    **_MPICH,
    "HYDRA_IFACE": CONTROL,
}
