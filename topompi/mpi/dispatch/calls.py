"""The table of a communicator's calls: the functions already chosen, keyed by method, root, operation and size.

With the C extension ``_calls`` (see ``pyproject.toml``), a call that follows an identical one reaches the MPI library
or topompi's plan without any Python code of topompi. Without the extension, methods in Python look the call up, which
takes about a third of the time of an 8-byte call between two ranks (``make bench-execution``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MemberDescriptorType
from typing import Any, cast

from mpi4py import MPI

from ..execution.native import NativeIntracomm
from ..execution.specs import CallSpec, Form

__all__ = ["COMPILED", "Calls", "Run", "blocking", "passing", "persistent"]

# A function that runs a call: it takes the communicator and the arguments of the call, and returns the name of the
# algorithm, or None if the MPI library runs the call.
Run = Callable[..., "str | None"]
DEFAULTS = {"root": 0, "op": MPI.SUM, "recvcounts": None, "info": MPI.INFO_NULL}  # mpi4py's defaults of parameters
MOST = 1024  # maximum number of entries of a table, which bounds its memory; a full table is emptied
# Errors of a look-up if the message has no ``nbytes``, because it is no array, or an argument cannot be hashed.
NEW = (AttributeError, TypeError)

try:
    from ._calls import Calls, Method

    COMPILED = True
except ImportError:
    COMPILED = False

    class Calls:  # type: ignore[no-redef]  # used if the class in C is not there
        """The table of a communicator's calls, empty at first: for each known call, the function that runs it.

        :ivar all: True if the MPI library runs every call.
        :ivar passes: True if calls of methods that the MPI library always runs go to it at once, because they need not
            be counted or checked.
        :ivar made: number of the communicator's blocking collective calls on buffers, including the current one.
        :ivar until: last call of a communicator, counted from 1, for which this table may be used as another table's
            ``others``; 0 if it may be used for all calls.
        :ivar others: another table, searched after this one; None at first.
        :ivar runs: the function that runs a call, by number of the method, root, ``id`` of the operation, and bytes.
        """

        __slots__ = ("all", "made", "others", "passes", "runs", "until")

        def __init__(self) -> None:
            self.all = self.passes = False
            self.made = self.until = 0
            self.others: Any = None
            self.runs: dict[tuple[int, int, int, int], Run] = {}

        def __len__(self) -> int:
            return len(self.runs)

        def add(self, method: int, root: int, op: MPI.Op | None, nbytes: int, run: Run) -> None:
            """Add the function that runs the calls of a method with this root, operation and size.

            :param method: number of the method, ``CallSpec.number``.
            :param root: the root; 0 in calls without one.
            :param op: a predefined operation, whose ``id`` never changes; None in calls without one.
            :param nbytes: bytes of the message at ``CallSpec.sized_by``; 0 in a call without messages.
            :param run: the function, called with the communicator and the arguments of the call.
            """
            if len(self.runs) >= MOST:
                self.runs.clear()
            self.runs[method, root, 0 if op is None else id(op), nbytes] = run

        def find(self, key: tuple[int, int, int, int], made: int) -> Run | None:
            """The function that runs a call, from this table or from ``others``; None if no table has the call.

            :param key: number of the method, root, ``id`` of the operation and bytes, as in ``runs``.
            :param made: number of calls of the communicator, the current one included.
            """
            table: Any = self
            while table is not None:
                if (not table.until or made <= table.until) and (run := table.runs.get(key)) is not None:
                    if not table.until and len(self.runs) < MOST:
                        self.runs[key] = run  # copied from the other table, so that the next look-up ends here
                    return cast("Run", run)
                table = table.others
            return None

        def clear(self) -> None:
            """Drop all entries, and send every call through Python again."""
            self.all = self.passes = False
            self.others = None
            self.runs.clear()


_SLOW = """\
def {name}(self, {signature}):
    choose(self, {name!r}, ({arguments}), {root}, {op})
"""
_LOOKED_UP = """\
def {name}(self, {signature}):
    try:
        calls = table(self)
    except TypeError:  # one of mpi4py's communicators
        native(self, {arguments})
        return
    except AttributeError:  # made by another class's __new__
        choose(self, {name!r}, ({arguments}), {root}, {op})
        return
    if calls.all:
        native(self, {arguments})
        return
    calls.made += 1
    try:
        key = {number}, {root_key}, {op_key}, {nbytes}
        run = (None if calls.until else calls.runs.get(key)) or calls.find(key, calls.made)
    except NEW:
        run = None
    if run is None:  # not where the look-up failed: an error of the call would be chained to its error
        choose(self, {name!r}, ({arguments}), {root}, {op})
        return
    run(self, {arguments})
"""
_PERSISTENT = """\
def {name}_init(self, {signature}, info=DEFAULTS["info"]):
    return prepare(self, {name!r}, ({arguments}), info)
"""


def blocking(
    spec: CallSpec, slot: MemberDescriptorType, module: str, choose: Callable[..., None]
) -> Callable[..., object]:
    """Make the method of topompi's communicators for a blocking collective on buffers.

    The method looks the call up in the communicator's table; if the table lacks the call, the method calls ``choose``.
    It is compiled from source text, as methods of data classes are, so that positional, named and omitted arguments
    cost no more than in any other method.

    :param spec: the description of the call.
    :param slot: the descriptor of the slot in which communicators keep their ``Calls``.
    :param module: name of the module whose class gets the method.
    :param choose: function that chooses and runs; it takes the communicator, the call's name, arguments, root and
        operation.
    """
    native = getattr(NativeIntracomm, spec.name)
    function = _made(_SLOW if COMPILED else _LOOKED_UP, spec, native, module, choose=choose, table=slot.__get__)
    if not COMPILED:
        return function
    parameters = spec.parameters
    root, op = (parameters.index(one) if one in parameters else -1 for one in ("root", "op"))
    message = -1 if spec.sized_by is None else spec.sized_by
    return Method(function, native, slot, spec.number, parameters, function.__defaults__ or (), message, root, op)


def persistent(spec: CallSpec, module: str, prepare: Callable[..., MPI.Prequest]) -> Callable[..., MPI.Prequest]:
    """Make the method ``*_init`` of a collective, which makes a persistent request.

    :param spec: the description of the blocking call.
    :param module: name of the module whose class gets the method.
    :param prepare: function that makes the request; it takes the communicator, the call's name, its arguments and the
        hints.
    """
    return _made(_PERSISTENT, spec, getattr(NativeIntracomm, f"{spec.name}_init"), module, prepare=prepare)


def passing(
    function: Callable[..., object], native: Callable[..., object], slot: MemberDescriptorType
) -> Callable[..., object]:
    """Make the method of topompi's communicators for a call that the MPI library always runs.

    :param function: the method in Python, which counts and checks the call and then calls the MPI library.
    :param native: the MPI library's method, called at once if nothing is to be counted or checked.
    :param slot: the descriptor of the slot in which communicators keep their ``Calls``.
    """
    if not COMPILED:
        return function
    return Method(function, native, slot, 0, (), (), -1, -1, -1)


def _nbytes(spec: CallSpec) -> str:
    """The Python expression for the bytes of a call, as source text.

    Its evaluation raises one of the errors ``NEW`` (AttributeError, TypeError) if the message has no ``nbytes``.
    """
    if spec.form is Form.NOTHING:
        return "0"
    return f"{None if spec.sized_by is None else spec.parameters[spec.sized_by]}.nbytes"


def _made(text: str, spec: CallSpec, native: Callable[..., object], module: str, **used: object) -> FunctionType:
    """A method compiled from a template of source text, with the signature and docstring of mpi4py's method.

    :param text: the template, in which the call's name, parameters and key are filled in.
    :param spec: the description of the call.
    :param native: mpi4py's method.
    :param module: name of the module whose class gets the method.
    :param used: functions that the text calls, by name.
    """
    words = {
        "name": spec.name,
        "signature": ", ".join(f"{one}=DEFAULTS[{one!r}]" if one in DEFAULTS else one for one in spec.parameters),
        "arguments": "".join(f"{one}, " for one in spec.parameters),
        "root": "root" if spec.rooted else None,
        "op": "op" if spec.reduces else None,
        "number": spec.number,
        "root_key": "root" if spec.rooted else 0,
        "op_key": "id(op)" if spec.reduces else 0,
        "nbytes": _nbytes(spec),
    }
    names: dict[str, Any] = {"DEFAULTS": DEFAULTS, "NEW": NEW, "native": native, "__name__": module, **used}
    exec(text.format(**words), names)
    function: FunctionType = names[native.__name__]
    function.__doc__, function.__qualname__ = native.__doc__, f"Collectives.{native.__name__}"
    function.__annotations__ = native.__annotations__
    function.__code__ = function.__code__.replace(co_qualname=function.__qualname__)  # profilers show this name
    return function
