"""From a call of a communicator to what runs it: one table, looked up in C where a compiler was at hand.

With ``_calls`` built (see ``pyproject.toml``) a call like an earlier one reaches what runs it, the MPI library or a
plan, without a line of Python of ours. Without it methods in Python look it up: a tenth to a third of a call of 8 bytes
between two ranks, most where work between two calls has taken their place in the caches (``make bench-execution``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from mpi4py import MPI

from ..execution.specs import CallSpec

__all__ = ["COMPILED", "Calls", "Run", "blocking", "passing", "persistent"]

Run = Callable[..., object]  # of a communicator and the arguments of the call
DEFAULTS = {"root": 0, "op": MPI.SUM, "recvcounts": None, "info": MPI.INFO_NULL}  # of parameters, as mpi4py has them
MOST = 1024  # calls that are known: beyond, all are forgotten, and chosen for again
# Raised by the look for a call like an earlier one: there is none, or the message is no array.
NEW = (AttributeError, KeyError, TypeError)

try:
    from ._calls import Calls, Method

    COMPILED = True
except ImportError:
    COMPILED = False

    class Calls:  # type: ignore[no-redef]  # the one in C is not there
        """What runs the calls of a communicator; nothing is known at first.

        :ivar all: whether the MPI library runs every call.
        :ivar passes: whether it runs those at once that are always its own.
        """

        __slots__ = ("all", "passes", "runs")

        def __init__(self) -> None:
            self.all = self.passes = False
            self.runs: dict[tuple[int, int, int, int], Run] = {}

        def __len__(self) -> int:
            return len(self.runs)

        def add(self, method: int, root: int, op: MPI.Op | None, nbytes: int, run: Run) -> None:
            """Run calls of a method in this way.

            :param method: its number.
            :param root: the root; 0 where there is none.
            :param op: the operation, one that lasts; None where there is none.
            :param nbytes: bytes of the message that the call's spec names.
            :param run: what runs them.
            """
            if len(self.runs) >= MOST:
                self.runs.clear()
            self.runs[method, root, 0 if op is None else id(op), nbytes] = run

        def clear(self) -> None:
            """Forget all."""
            self.all = self.passes = False
            self.runs.clear()


_SLOW = """\
def {name}(self, {signature}):
    self._choose({name!r}, ({arguments}), {root}, {op})
"""
_LOOKED_UP = """\
def {name}(self, {signature}):
    calls = self._calls
    if calls.all:
        native(self, {arguments})
        return
    try:
        run = calls.runs[{number}, {root_key}, {op_key}, {message}.nbytes]
    except NEW:
        self._choose({name!r}, ({arguments}), {root}, {op})
        return
    run(self, {arguments})
"""
_PERSISTENT = """\
def {name}_init(self, {signature}, info=DEFAULTS["info"]):
    return self._prepare({name!r}, ({arguments}), info)
"""


def blocking(spec: CallSpec, slot: Any, module: str) -> Callable[..., None]:
    """The method of a blocking collective on buffers.

    The table is looked up first; what it does not have goes to the communicator's ``_choose``, of the call's name,
    arguments, root and operation. The method is made from text, as those of data classes are: an argument by name, by
    place or left out then costs what it costs any other method.

    :param spec: of the call.
    :param slot: the descriptor of the slot in which communicators have their ``Calls``.
    :param module: name of the module whose class gets the method.
    """
    native = getattr(MPI.Intracomm, spec.name)
    function = _made(_SLOW if COMPILED else _LOOKED_UP, spec, native, module)
    if not COMPILED:
        return function
    parameters = spec.parameters
    root, op = (parameters.index(one) if one in parameters else -1 for one in ("root", "op"))
    message = -1 if spec.sized_by is None else spec.sized_by
    return Method(function, native, slot, spec.number, parameters, function.__defaults__ or (), message, root, op)


def persistent(spec: CallSpec, module: str) -> Callable[..., MPI.Prequest]:
    """The method that prepares a collective to be started again and again: the communicator's ``_prepare`` does it."""
    return _made(_PERSISTENT, spec, getattr(MPI.Intracomm, f"{spec.name}_init"), module)


def passing(function: Callable[..., Any], native: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The method of a call that the MPI library always runs.

    :param function: the method in Python, for calls that are to be counted or checked.
    :param native: the library's.
    :param slot: the descriptor of the slot in which communicators have their ``Calls``.
    """
    if not COMPILED:
        return function
    return Method(function, native, slot, 0, (), (), -1, -1, -1)


def _made(text: str, spec: CallSpec, native: Any, module: str) -> FunctionType:
    """A method from its text."""
    words = {
        "name": spec.name,
        "signature": ", ".join(f"{one}=DEFAULTS[{one!r}]" if one in DEFAULTS else one for one in spec.parameters),
        "arguments": "".join(f"{one}, " for one in spec.parameters),
        "root": "root" if spec.rooted else None,
        "op": "op" if spec.reduces else None,
        "number": spec.number,
        "root_key": "root" if spec.rooted else 0,
        "op_key": "id(op)" if spec.reduces else 0,
        "message": "None" if spec.sized_by is None else spec.parameters[spec.sized_by],
    }
    names: dict[str, Any] = {"DEFAULTS": DEFAULTS, "NEW": NEW, "native": native, "__name__": module}
    exec(text.format(**words), names)
    function: FunctionType = names[native.__name__]
    function.__doc__, function.__qualname__ = native.__doc__, f"Collectives.{native.__name__}"
    function.__code__ = function.__code__.replace(co_qualname=function.__qualname__)  # for profiles
    return function
