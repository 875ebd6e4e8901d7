"""mpi4py's own communicator classes, unaffected when the launcher later replaces their names in ``mpi4py.MPI``."""

from __future__ import annotations

from mpi4py.MPI import Cartcomm as NativeCartcomm
from mpi4py.MPI import Distgraphcomm as NativeDistgraphcomm
from mpi4py.MPI import Graphcomm as NativeGraphcomm
from mpi4py.MPI import Intercomm as NativeIntercomm
from mpi4py.MPI import Intracomm as NativeIntracomm
from mpi4py.MPI import Topocomm as NativeTopocomm

__all__ = [
    "NATIVE_KINDS",
    "NativeCartcomm",
    "NativeDistgraphcomm",
    "NativeGraphcomm",
    "NativeIntercomm",
    "NativeIntracomm",
    "NativeTopocomm",
]

NATIVE_KINDS = frozenset(
    (NativeIntracomm, NativeTopocomm, NativeCartcomm, NativeGraphcomm, NativeDistgraphcomm, NativeIntercomm)
)
