"""mpi4py's own classes of communicators, whatever the launcher puts in their place in ``mpi4py.MPI`` later."""

from __future__ import annotations

from mpi4py import MPI

__all__ = [
    "NATIVE_KINDS",
    "NativeCartcomm",
    "NativeDistgraphcomm",
    "NativeGraphcomm",
    "NativeIntercomm",
    "NativeIntracomm",
    "NativeTopocomm",
]

NativeIntracomm, NativeTopocomm, NativeIntercomm = MPI.Intracomm, MPI.Topocomm, MPI.Intercomm
NativeCartcomm, NativeGraphcomm, NativeDistgraphcomm = MPI.Cartcomm, MPI.Graphcomm, MPI.Distgraphcomm

NATIVE_KINDS = frozenset(
    (NativeIntracomm, NativeTopocomm, NativeCartcomm, NativeGraphcomm, NativeDistgraphcomm, NativeIntercomm)
)
