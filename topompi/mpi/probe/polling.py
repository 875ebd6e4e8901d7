"""The way in which ranks wait for a message: detection of ranks that sleep, and a switch to keep them awake.

A sleeping rank notices a message some 50 us late, which is many times the time that a switch adds to a round trip. MPI
libraries let waiting ranks sleep or yield if there are more ranks than processors. MPI has no call to change this, but
the libraries have their own.
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

HEAVY = b"MPIR_CVAR_ENABLE_HEAVY_YIELD"  # MPICH's control variable: whether waiting ranks sleep

Setter = Callable[[bool], bool]  # sets whether waiting ranks yield, and returns whether they did before


@contextmanager
def awake() -> Iterator[None]:
    """Keep this rank awake while it waits for messages, if the MPI library allows it, until the end of the ``with``.

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
    """Number of times that this thread has given up its processor to wait; 0 if the system does not count."""
    if resource is None:
        return 0
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nvcsw


@cache
def _setter() -> Setter | None:
    """The function that sets whether waiting ranks yield; None if the library has none that topompi knows.

    Open MPI reads ``mpi_yield_when_idle`` only at its start, but the function behind it has been the same since 1.0.
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
    """The setter for MPICH, by MPI's tools interface (MPI_T), which mpi4py does not have."""
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
