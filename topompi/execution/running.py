"""Collectives run as plans: from the arguments of a call of mpi4py to messages, once or again and again."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..schedules import ALGORITHMS
from ..schedules.segments import can_be_cut, cut, divides, segments_of
from .binding import Binding, bind, bind_persistent
from .buffers import DeviceMemoryError
from .keys import quick_key
from .leaders import symmetric as overlevels
from .methods import METHODS
from .operands import READERS, Operands
from .parts import part_of
from .persistent import Prepared
from .plan import Plan, compile_part

if TYPE_CHECKING:
    from .levels import Levels

__all__ = ["METHODS", "can_run", "prepare", "ready", "run"]

_LOCAL_COUNTS = ("Gatherv", "Scatterv", "Alltoallv", "Alltoallw")  # a rank knows only what it sends and receives itself
_REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block")


def can_run(method: str, algorithm: str, *, commutative: bool = True) -> bool:
    """Whether an algorithm is there for a method: by what all ranks know, and without looking at a network.

    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, perhaps cut (``ring/32K``).
    :param commutative: whether the operation of a reduction is.
    """
    if algorithm == "native":
        return True
    name, slash, _ = algorithm.partition("/")
    ordered = method in _REDUCTIONS and not commutative
    if algorithm == "levels":
        return method in overlevels.METHODS and not ordered
    known = ALGORITHMS[METHODS[method]].get(name) if method in METHODS else None
    if known is None or (ordered and not known.keeps_order):
        return False
    if method in _LOCAL_COUNTS:
        return known.local_counts and not slash
    return not slash or can_be_cut(METHODS[method], algorithm)


def run(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a collective by an algorithm; collective.

    :param method: a method of ``MPI.Intracomm``.
    :param algorithm: what ``can_run`` allows, alike on all ranks.
    :param arguments: those of the method, in their order, defaults filled in.
    :returns: the algorithm that ran: ``native`` where this one cannot, for the network or for the sizes, which all
        ranks find alike, or for messages in a device's memory, which they must be on all ranks or on none.
    :raises ValueError: for an algorithm that ``can_run`` does not allow; and as the method itself.
    """
    if algorithm == "levels":
        if method not in overlevels.METHODS:
            raise ValueError(f"expecting a method of {', '.join(overlevels.METHODS)}, got {method!r}")
        try:
            overlevels.METHODS[method](levels, *arguments)
        except DeviceMemoryError:  # messages are read before any is sent
            return _native(levels, method, arguments)
        return algorithm
    key = quick_key(method, algorithm, arguments)
    binding: Binding | None = None if key is None else levels.bindings.get(key)
    if binding is None:
        binding = _bound(levels, method, algorithm, arguments, key)
    if binding is None:
        return _native(levels, method, arguments)
    for call, some in binding.calls:
        call(*some)
    return algorithm


def _native(levels: Levels, method: str, arguments: tuple[Any, ...]) -> str:
    getattr(MPI.Intracomm, method)(levels.comm, *arguments)
    return "native"


def ready(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> None:
    """Do what ``run`` does before the first message, so that it takes as long as later calls; collective.

    Nothing for ``levels``, which makes its communicators when it runs.
    """
    if algorithm not in ("native", "levels"):
        key = quick_key(method, algorithm, arguments)
        if key is None or levels.bindings.get(key) is None:
            _bound(levels, method, algorithm, arguments, key)


def prepare(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> MPI.Prequest | Prepared:
    """A collective with its buffers, to be started again and again; collective.

    :param method: as in ``run``: ``Bcast`` for ``Bcast_init``.
    :returns: a request; the MPI library's own where no plan can run.
    """
    operands = None if algorithm in ("native", "levels") else _read(levels, method, algorithm, arguments)
    plan = None if operands is None else _plan(levels, METHODS[method], algorithm, operands)
    if operands is None or plan is None:
        native: MPI.Prequest = getattr(MPI.Intracomm, method + "_init")(levels.comm, *arguments)
        return native
    return Prepared(*bind_persistent(plan, operands, levels), arguments)


def _bound(
    levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...], key: Hashable | None
) -> Binding | None:
    """The calls of a plan on these arguments, kept by the key where they can be found again; None for native."""
    operands = None if algorithm == "native" else _read(levels, method, algorithm, arguments)
    plan = None if operands is None else _plan(levels, METHODS[method], algorithm, operands)
    if operands is None or plan is None:
        return None
    binding = bind(plan, operands, levels)
    if key is not None and operands.by_address:
        levels.bindings.put(key, binding, binding.weight)
    return binding


def _read(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> Operands | None:
    if not can_run(method, algorithm):
        raise ValueError(f"expecting an algorithm that can run {method}, got {algorithm!r}")
    try:
        operands = READERS[method](levels, *arguments)
    except DeviceMemoryError:
        return None
    return operands.in_bytes if operands is not None and "/" in algorithm else operands


def _pieces(collective: str, name: str, segment: int, operands: Operands, ranks: int) -> tuple[int | None, int]:
    """Of an algorithm that is cut: the blocks of its message, and the lanes of its transfers; alike on all ranks."""
    if divides(collective, name):
        return segments_of((operands.length or 0) * operands.pitch, segment), 1
    if operands.length is not None:
        longest = -(-operands.length // ranks)
    else:
        longest = operands.scale * (1 if operands.counts is None else int(operands.counts.max()))
    return None, segments_of(longest * operands.pitch, segment)


def _plan(levels: Levels, collective: str, algorithm: str, operands: Operands) -> Plan | None:
    """The plan of this rank; None where none can be made, on all ranks alike."""
    ordered = operands.op is not None and not operands.op.Is_commutative()
    if operands.empty:
        return Plan((), 1, 0, 0, False)
    counts = operands.counts
    known = None if counts is None else counts.tobytes()
    name, segment = cut(algorithm)
    blocks, lanes = (None, 1) if segment is None else _pieces(collective, name, segment, operands, levels.size)
    sizes = operands.length, operands.shift, operands.scale, known
    key = ("plan", collective, name, blocks, lanes, operands.root, *sizes, ordered)

    def make() -> Plan | str:
        part = part_of(levels, collective, name, operands.root, counts, ordered, blocks)
        if isinstance(part, str):
            return part
        try:
            return compile_part(part, operands.length, operands.shift, lanes, operands.scale)
        except ValueError as error:
            return str(error)

    made = levels.kept(key, make)
    return made if isinstance(made, Plan) else None
