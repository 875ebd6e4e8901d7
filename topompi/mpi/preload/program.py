"""The import of topompi in a compiled program, which must not notice it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from .elf import elf_file

__all__ = ["load"]


def load(library: str) -> None:
    """Import numpy, mpi4py and topompi into the program. No rank waits for another.

    :param library: path of the MPI library that the program has loaded.
    :raises ImportError: if a package is missing, or mpi4py is made for another MPI library.
    """
    with _variable("OPENBLAS_NUM_THREADS", "1"):  # else numpy's import starts a thread per core
        import_module("numpy")
    import mpi4py

    mpi4py.rc.initialize = mpi4py.rc.finalize = False  # the program does both
    mpi4py.rc.errors = "default"  # else the program's MPI_COMM_WORLD would return errors that it does not expect
    with _variable("MPI4PY_LIBMPI", library):  # mpi4py does not find a library that was loaded for its user alone
        _require_same(library)
        import_module("mpi4py.MPI")
    import_module(f"{__package__}.calls")


def _require_same(library: str) -> None:
    """Raise ImportError if the import of mpi4py would load a second MPI library."""
    spec = find_spec("mpi4py.MPI")
    if spec is None or spec.origin is None:
        raise ImportError("mpi4py is not made for this MPI library")
    needed = elf_file(spec.origin).needed
    name = elf_file(library).name
    if name not in needed:
        wanted = [one for one in needed if one.startswith("libmpi")]
        raise ImportError(f"mpi4py is made for {' '.join(wanted) or 'another MPI library'}, and the program has {name}")


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """A variable of the environment, set until the context ends, unless it has a value already."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
