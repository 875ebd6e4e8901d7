"""Methods that pass on to the MPI library what is left to it, in C where a compiler was at hand, else in Python alone.

With ``_direct`` built (see ``pyproject.toml``) a call that was chosen to be the library's reaches it without a line of
Python of ours. Without it the methods in Python look that up: a tenth to a third of a call of 8 bytes between two
ranks, most where work between two calls has taken their place in the caches (``make bench-execution``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from mpi4py import MPI

from ..execution.methods import SIZED_BY

__all__ = ["COMPILED", "Calls", "direct", "number"]

try:
    from ._direct import Calls, Method

    COMPILED = True
except ImportError:
    COMPILED = False

    class Calls:  # type: ignore[no-redef]  # where nothing looks them up, none are kept
        """The calls of a communicator that are left to the MPI library: nobody asks."""

        all = False

        def add(self, method: int, root: int, op: MPI.Op | None, nbytes: int) -> None:
            """Nothing to do."""

        def clear(self) -> None:
            """Nothing to do."""


_NUMBERS = {name: place for place, name in enumerate(SIZED_BY, 1)}
OTHER = len(_NUMBERS) + 1  # all whose sizes are not looked up


def number(method: str) -> int:
    """The number under which ``Calls`` knows a method."""
    return _NUMBERS.get(method, OTHER)


def direct(function: FunctionType, slot: Any) -> Callable[..., None]:
    """The method of a collective, by which what a handle's ``Calls`` have is the library's at once.

    :param function: the method in Python, for all else.
    :param slot: the descriptor of the slot in which handles have their ``Calls``.
    """
    if not COMPILED:
        return function
    name, code = function.__name__, function.__code__
    parameters = code.co_varnames[1 : code.co_argcount]
    root, op = (parameters.index(one) if one in parameters else -1 for one in ("root", "op"))
    made: Callable[..., None] = Method(
        function,
        native=getattr(MPI.Intracomm, name),
        slot=slot,
        number=number(name),
        parameters=parameters,
        message=SIZED_BY.get(name, -1),
        root=root,
        op=op,
        usual_op=MPI.SUM,
    )
    return made
