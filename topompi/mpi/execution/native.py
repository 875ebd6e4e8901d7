"""mpi4py's own classes of communicators and persistent requests, whatever ``mpi4py.MPI`` has under their names."""

from __future__ import annotations

from mpi4py.MPI import Cartcomm as NativeCartcomm
from mpi4py.MPI import Distgraphcomm as NativeDistgraphcomm
from mpi4py.MPI import Graphcomm as NativeGraphcomm
from mpi4py.MPI import Intercomm as NativeIntercomm
from mpi4py.MPI import Intracomm as NativeIntracomm
from mpi4py.MPI import Prequest as NativePrequest
from mpi4py.MPI import Topocomm as NativeTopocomm

__all__ = [
    "NATIVE_KINDS",
    "NativeCartcomm",
    "NativeDistgraphcomm",
    "NativeGraphcomm",
    "NativeIntercomm",
    "NativeIntracomm",
    "NativePrequest",
    "NativeTopocomm",
]

NATIVE_KINDS = frozenset(
    (NativeIntracomm, NativeTopocomm, NativeCartcomm, NativeGraphcomm, NativeDistgraphcomm, NativeIntercomm)
)
