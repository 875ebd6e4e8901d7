"""How ranks wait for a message: whether they sleep meanwhile, and how they are kept awake.

A rank that sleeps notices a message some 50 us late, many times what a switch adds to a round trip. Libraries let
ranks sleep or yield if there are more of them than processors. MPI has no call that changes it, the libraries have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from mpi4py import MPI

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["awake", "sleeps"]

HEAVY = b"MPIR_CVAR_ENABLE_HEAVY_YIELD"  # MPICH's control variable: whether a waiting rank sleeps

Setter = Callable[[bool], bool]  # sets whether waiting ranks yield; whether they did before


@contextmanager
def awake() -> Iterator[None]:
    """Keep this rank awake while it waits for messages, if the MPI library has a way; as before at the end.

    Cost: two calls of the library, some microseconds.
    """
    setter = _setter()
    before = setter(False) if setter is not None else False
    try:
        yield
    finally:
        if setter is not None and before:
            setter(True)


def sleeps() -> int:
    """How often this thread has given up its processor to wait for something, since it began; 0 if nobody counts."""
    if resource is None:
        return 0
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nvcsw


@cache
def _setter() -> Setter | None:
    """What sets whether waiting ranks yield; None if the library has no way that we know.

    Open MPI reads ``mpi_yield_when_idle`` once, at its start: the function behind it has been the same since 1.0.
    MPICH reads its variable at each wait.
    """
    try:
        library = ctypes.CDLL(MPI.__file__)
    except OSError:
        return None
    try:
        function = library.opal_progress_set_yield_when_idle
    except AttributeError:
        return _of_mpich(library)
    function.argtypes, function.restype = [ctypes.c_bool], ctypes.c_bool
    setter: Setter = function
    return setter


def _of_mpich(library: ctypes.CDLL) -> Setter | None:
    """The setter by the tools interface of MPI, which mpi4py does not have."""
    level, index, count, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    try:
        failed = (
            library.MPI_T_init_thread(0, ctypes.byref(level))  # 0 is MPI_THREAD_SINGLE everywhere
            or library.MPI_T_cvar_get_index(HEAVY, ctypes.byref(index))
            or library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count))
        )
    except AttributeError:
        return None

    def setter(yields: bool) -> bool:
        before, now = ctypes.c_int(), ctypes.c_int(yields)
        if library.MPI_T_cvar_read(handle, ctypes.byref(before)) == 0:
            library.MPI_T_cvar_write(handle, ctypes.byref(now))
        return bool(before.value)

    return None if failed else setter
