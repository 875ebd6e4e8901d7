"""mpi4py's own classes of communicators, whatever the launcher puts in their place in ``mpi4py.MPI`` later."""

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
