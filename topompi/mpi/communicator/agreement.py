"""The checks of ``TOPOMPI_CHECK``: before each collective call, all ranks verify that they make the same call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...errors import TopompiError
from ..execution.buffers import DeviceMemoryError, block, blocks, is_in_place, on_device, vector
from ..execution.native import NativeIntracomm
from ..execution.specs import CALLS, CallSpec, Form, Varying
from .handle import lineage_of
from .watchdog import call_site, watching

__all__ = ["AgreementError", "checked"]

Lengths = NDArray[np.int64] | int  # bytes for each rank, shape (ranks,), or one number for all ranks


class AgreementError(TopompiError, ValueError):
    """The ranks of a communicator made different collective calls, or one call with arguments that do not match."""


@dataclass(frozen=True)
class CallFacts:
    """One rank's description of a call, which is compared with the other ranks' descriptions.

    :param method: name of mpi4py's method.
    :param root: the root; None in a call without one.
    :param operation: name of the reduction operation, or, for a user's operation, whether it commutes; None in other
        calls.
    :param size: bytes of the vector, if it must be equally long on all ranks; else None.
    :param sends: bytes that the rank sends to each rank, shape (ranks,), or one number for all ranks; None if the rank
        sends nothing or does not know the number.
    :param receives: bytes that the rank expects from each rank, shape (ranks,), or one number for all ranks; None if
        the rank receives nothing or does not know the number.
    :param memory: kind of memory of the messages; if it is a device's, no bytes are compared.
    :param problem: the reason why this rank cannot make the call; None if it can.
    """

    method: str
    root: object = None
    operation: str | None = None
    size: int | None = None
    sends: Lengths | None = None
    receives: Lengths | None = None
    memory: str = "the host's"
    problem: str | None = None


def checked(
    comm: MPI.Intracomm, method: str, arguments: tuple[object, ...], root: object = None, op: object = None
) -> AbstractContextManager[None]:
    """A context that verifies that all ranks make the same call with matching arguments before its body; collective.

    If ``TOPOMPI_CHECK`` is not set, nothing is verified. The check compares method, root, operation, the bytes of
    vectors, and for each pair of ranks the bytes that one sends with the bytes that the other expects. It does not
    compare the types of the items, although MPI requires them to match. If check and call together take longer than the
    seconds in ``TOPOMPI_CHECK``, the watchdog prints a line.

    :param comm: the communicator of topompi on which the call is made.
    :param method: name of mpi4py's method.
    :param arguments: all arguments of the method, in their order, with root and operation.
    :param root: the root; None in a call without one.
    :param op: the operation of a reduction, an ``MPI.Op`` or a function of two objects; None in other calls.
    :raises AgreementError: if the calls differ; the same on all ranks.

    Cost: one allgather of objects, and p * p numbers on each of p ranks, which only debugging can afford.
    """
    return _compared(comm, method, arguments, root, op) if lineage_of(comm).checks else nullcontext()


@contextmanager
def _compared(
    comm: MPI.Intracomm, method: str, arguments: tuple[object, ...], root: object, op: object
) -> Iterator[None]:
    plain = NativeIntracomm(comm)
    rank, size = plain.Get_rank(), plain.Get_size()
    said = _described(CallFacts(method, root, None if op is None else _name(op)), arguments, rank, size)
    with watching(lineage_of(comm).checks, partial(_waits, said, call_site(), plain.Get_name(), rank, size)):
        _compare(plain.allgather(said))
        yield


def _waits(said: CallFacts, where: str, name: str, rank: int, size: int) -> str:
    """The watchdog's line about a call in which this rank still waits."""
    about = {"root": said.root, "operation": said.operation, "bytes": said.size}
    details = "".join(f", {what} {value}" for what, value in about.items() if value is not None)
    world = MPI.COMM_WORLD.Get_rank()
    return (
        f"rank {world} waits in {said.method}{details} on {name or 'a communicator'}, rank {rank} of {size}, at {where}"
    )


def _compare(told: Sequence[CallFacts]) -> None:
    method = told[0].method  # rank 0's method, so that the error has the same text on all ranks
    _check_same(method, "collective", [one.method for one in told])
    _check_same(method, "root", [one.root for one in told])
    _check_same(method, "operation", [one.operation for one in told])
    for rank, one in enumerate(told):
        if one.problem is not None:
            raise AgreementError(f"{method}: rank {rank}: {one.problem}")
    _check_same(method, "kind of memory", [one.memory for one in told])
    _check_same(method, "number of bytes", [one.size for one in told])
    _pairs(method, told)


def _check_same(method: str, what: str, values: Sequence[Hashable]) -> None:
    ranks = defaultdict(list)
    for rank, value in enumerate(values):
        ranks[value].append(rank)
    if len(ranks) > 1:
        got = "; ".join(f"{value} on {_listed(where)}" for value, where in ranks.items())
        raise AgreementError(f"{method}: expecting one {what} on all ranks, got {got}")


def _listed(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}"


def _pairs(method: str, told: Sequence[CallFacts]) -> None:
    sent = _table([one.sends for one in told])
    expected = _table([one.receives for one in told]).T
    wrong = np.argwhere((sent != expected) & (sent >= 0) & (expected >= 0))
    if len(wrong):
        source, target = wrong[0]
        raise AgreementError(
            f"{method}: rank {target} expects {expected[source, target]} bytes from rank {source}, "
            f"which sends {sent[source, target]}"
        )


def _table(rows: Sequence[Lengths | None]) -> NDArray[np.int64]:
    """The bytes per pair of ranks, shape (ranks, ranks): row i has the numbers of rank i, -1 for an unknown number."""
    table = np.full((len(rows), len(rows)), -1, dtype=np.int64)
    for rank, row in enumerate(rows):
        if row is not None:
            table[rank] = row
    return table


def _described(said: CallFacts, arguments: tuple[object, ...], rank: int, size: int) -> CallFacts:
    """A rank's description of a call, completed by the bytes of its messages, unless these are Python objects."""
    stem = said.method.removesuffix("_init")
    spec = CALLS.get(stem[1:].capitalize() if stem[:1] == "I" else stem)
    if spec is None or spec.form is Form.NOTHING:
        return said
    if any(on_device(message) for message in _messages(spec, arguments, rank)):
        return replace(said, memory="a device's")
    if spec.counts is Varying.TYPED:
        return said
    try:
        return replace(said, **_DESCRIPTIONS[spec.form](spec, arguments, rank, size))
    except DeviceMemoryError:
        return replace(said, memory="a device's")
    except Exception as error:  # any error, because all ranks must learn of it
        return replace(said, problem=f"{error}")


def _messages(spec: CallSpec, arguments: tuple[object, ...], rank: int) -> list[object]:
    """The arguments that are messages, without those that MPI ignores on this rank."""
    named = dict(zip(spec.parameters, arguments, strict=False))
    if spec.rooted and named.get("root") != rank and spec.form is not Form.BROADCAST:
        named.pop("sendbuf" if spec.form is Form.SCATTER else "recvbuf", None)
    return [named[name] for name in ("buf", "sendbuf", "recvbuf") if name in named]


def _name(operation: object) -> str:
    if not isinstance(operation, MPI.Op):
        return "a Python function"
    if operation.is_predefined:
        return next((name for name in _PREDEFINED if operation == getattr(MPI, name)), "predefined")
    return f"the user's own, {'' if operation.Is_commutative() else 'not '}commutative"


_PREDEFINED = (
    *("MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MAXLOC", "MINLOC", "REPLACE"),
    "NO_OP",
)


class Said(TypedDict, total=False):
    """Fields of ``CallFacts`` that the description of a call's messages fills."""

    size: int
    sends: Lengths | None
    receives: Lengths | None


def _broadcast(spec: CallSpec, arguments: tuple[object, ...], rank: int, size: int) -> Said:
    return {"size": block(arguments[0], readonly=True).size}


def _gather(spec: CallSpec, arguments: tuple[object, ...], rank: int, size: int) -> Said:
    sendbuf, recvbuf = arguments[:2]
    if not spec.rooted:
        receives = np.broadcast_to(_of_each(spec, recvbuf, size), size)
        sends = int(receives[rank]) if is_in_place(sendbuf) else block(sendbuf, readonly=True).size
        return {"sends": sends, "receives": receives}
    at_root = rank == arguments[2]
    received = _of_each(spec, recvbuf, size) if at_root else None
    if at_root and is_in_place(sendbuf):
        return {"receives": received}
    return {"sends": block(sendbuf, readonly=True).size, "receives": received}


def _scatter(spec: CallSpec, arguments: tuple[Any, ...], rank: int, size: int) -> Said:
    sendbuf, recvbuf, root = arguments
    sends = _of_each(spec, sendbuf, size) if rank == root else None
    if rank == root and is_in_place(recvbuf):
        return {"sends": sends}
    receives = np.full(size, -1)
    receives[root : root + 1] = block(recvbuf, readonly=True).size
    return {"sends": sends, "receives": receives}


def _alltoall(spec: CallSpec, arguments: tuple[object, ...], rank: int, size: int) -> Said:
    receives = _of_each(spec, arguments[1], size)
    sends = receives if is_in_place(arguments[0]) else _of_each(spec, arguments[0], size)
    return {"sends": sends, "receives": receives}


def _reduction(spec: CallSpec, arguments: tuple[object, ...], rank: int, size: int) -> Said:
    message = arguments[1] if is_in_place(arguments[0]) else arguments[0]
    if spec.form is Form.REDUCE_SCATTER and spec.counts is Varying.EQUAL:
        return {"size": size * blocks(message, size, readonly=True).block(0).size}
    return {"size": block(message, readonly=True).size}


def _of_each(spec: CallSpec, message: object, size: int) -> Lengths:
    """Bytes of each rank's block, shape (ranks,), or one number if all are equal."""
    if spec.counts is Varying.COUNTED:
        return vector(message, size, readonly=True).sizes
    return blocks(message, size, readonly=True).block(0).size


_DESCRIPTIONS: dict[Form, Callable[[CallSpec, tuple[object, ...], int, int], Said]] = {
    Form.BROADCAST: _broadcast,
    Form.GATHER: _gather,
    Form.SCATTER: _scatter,
    Form.ALLTOALL: _alltoall,
    Form.REDUCTION: _reduction,
    Form.REDUCE_SCATTER: _reduction,
}
