"""Methods of communicators that count what they send and then do what the methods they stand for do.

They stand in our classes while a recording runs and are taken out when it stops: a program that is not recorded runs
none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import ndarray
from numpy.typing import NDArray

from ..communicator import Intracomm
from ..communicator.kinds import Topocomm
from ..dispatch.calls import DEFAULTS
from ..execution.areas import Pieces
from ..execution.buffers import block, is_in_place, vector
from ..execution.operands import typed
from ..execution.sizes import nbytes
from ..execution.specs import CALLS, CallSpec, Counts, Form
from .counting import Counters, Group

__all__ = ["Prequest", "install", "remove"]

Method = Callable[..., Any]
GroupOf = Callable[[Any], Group]

SENDS = [f"{mode}send" for mode in ("", "b", "s", "r", "i", "ib", "is", "ir")]
OBJECT_SENDS = ("send", "bsend", "ssend", "isend", "ibsend", "issend")
EXCHANGES = ("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace", "sendrecv")
IN_ALL_BLOCKS = ("Alltoall", "Allgather")  # whose size is that of a block, and whose message has all blocks
_replaced: list[tuple[type, str, Any]] = []


def install(counters: Counters, group_of: GroupOf) -> None:
    """Let the methods of our communicators count.

    :param counters: what they count in.
    :param group_of: the group of a communicator in these counters.
    """
    for name in SENDS:
        _put(Intracomm, name.capitalize(), _sending, counters, group_of)
        _put(Intracomm, f"{name.capitalize()}_init", _sending_later, counters, group_of)
    for name in OBJECT_SENDS:
        _put(Intracomm, name, _sending_object, counters, group_of)
    for name in EXCHANGES:
        _put(Intracomm, name, _exchanging, counters, group_of)
    for name, spec in CALLS.items():
        for form in (name, f"I{name.lower()}"):
            _put(Intracomm, form, _collective, counters, group_of, spec)
        _put(Intracomm, f"{name}_init", _collective_later, counters, group_of, spec)
        _put(Intracomm, name.lower(), _of_objects, counters, group_of, spec)
    for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"):
        for form in (f"Neighbor_{name}", f"Ineighbor_{name}"):
            _put(Topocomm, form, _neighbours, counters, group_of)
        _put(Topocomm, f"Neighbor_{name}_init", _neighbours_later, counters, group_of)
    for name in ("allgather", "alltoall"):
        _put(Topocomm, f"neighbor_{name}", _neighbour_objects, counters, group_of)


def remove() -> None:
    """Put back what stood in the classes before."""
    while _replaced:
        kind, name, before = _replaced.pop()
        if before is None:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


def _put(kind: type, name: str, make: Callable[..., Method], counters: Counters, *more: Any) -> None:
    before, native = vars(kind).get(name), getattr(kind, name, None)
    if native is not None:
        method = make(native, counters, *more)
        method.__name__, method.__doc__ = name, native.__doc__
        _replaced.append((kind, name, before))
        setattr(kind, name, method)


def bytes_of(message: Any) -> int:
    """Bytes of a message of any form; 0 for one that cannot be read, of which the library has its own opinion."""
    try:
        return block(message, readonly=True).size
    except Exception:
        return 0


def length_of(value: Any) -> int:
    """Bytes of an object as mpi4py sends it."""
    return len(MPI.pickle.dumps(value))


# The methods of messages look alike on purpose: a further call inside would cost a quarter of what they cost.
def _sending(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    messages, volume = counters.table("E")

    def send(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        done = native(self, buf, dest, tag)
        if dest >= 0:
            group = getattr(self, "_group", None)
            if group is None or group.owner is not counters:
                group = group_of(self)
            unit = group.units[dest]
            messages[unit] += 1
            volume[unit] += buf.nbytes if type(buf) is ndarray else bytes_of(buf)
        return done

    return send


def _sending_object(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    """Objects are pickled here and sent as their bytes, as mpi4py itself does."""
    buffers = getattr(MPI.Comm, native.__name__.capitalize())
    messages, volume = counters.table("E")

    def send(self: Any, obj: Any, dest: int, tag: int = 0) -> Any:
        if dest < 0:
            return native(self, obj, dest, tag)
        data = MPI.pickle.dumps(obj)
        done = buffers(self, [data, MPI.BYTE], dest, tag)
        group = getattr(self, "_group", None)
        if group is None or group.owner is not counters:
            group = group_of(self)
        unit = group.units[dest]
        messages[unit] += 1
        volume[unit] += len(data)
        return done

    return send


def _exchanging(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    messages, volume = counters.table("E")
    objects = native.__name__ == "sendrecv"
    first = "sendobj" if objects else "buf" if native.__name__.endswith("_replace") else "sendbuf"
    size_of = length_of if objects else bytes_of

    def exchange(self: Any, *args: Any, **named: Any) -> Any:
        message = args[0] if args else named.get(first)
        dest = args[1] if len(args) > 1 else named.get("dest", MPI.PROC_NULL)
        done = native(self, *args, **named)
        if dest >= 0:
            group = getattr(self, "_group", None)
            if group is None or group.owner is not counters:
                group = group_of(self)
            unit = group.units[dest]
            messages[unit] += 1
            volume[unit] += message.nbytes if type(message) is ndarray and not objects else size_of(message)
        return done

    return exchange


def _group(comm: Any, counters: Counters, group_of: GroupOf) -> Group:
    group = getattr(comm, "_group", None)
    return group if group is not None and group.owner is counters else group_of(comm)


_Native = MPI.Prequest  # the launcher puts ours in its place


class Prequest(MPI.Prequest):
    """A persistent request that is counted when it is started."""

    count: Callable[[], None]

    def Start(self) -> None:
        """Start the request, and count it."""
        super().Start()
        self.count()

    @classmethod
    def Startall(cls, requests: list[MPI.Prequest]) -> None:
        """Start requests, and count those that are counted."""
        _Native.Startall(requests)
        for request in requests:
            if isinstance(request, Prequest):
                request.count()


def _counted(request: Any, count: Callable[[], None]) -> Any:
    """The same request, counted at each start."""
    if isinstance(request, _Native):
        counted = Prequest(request)
        counted.count = count
        return counted
    start = request.Start  # a plan of ours, which is no request of MPI

    def counted_start() -> None:
        start()
        count()

    request.Start = counted_start
    return request


def _sending_later(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    def prepare(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        request = native(self, buf, dest, tag)
        if dest < 0:
            return request
        units, volume = _group(self, counters, group_of)[np.array([dest])], np.array([bytes_of(buf)])
        return _counted(request, lambda: counters.add("E", units, volume))

    return prepare


def _collective(native: Method, counters: Counters, group_of: GroupOf, spec: CallSpec) -> Method:
    at, root_at = _places(spec)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        done = native(self, *args, **named)
        group = getattr(self, "_group", None)
        if group is None or group.owner is not counters:
            group = group_of(self)
        if named or len(args) <= at or type(args[at]) is not ndarray:
            _count(group, spec, args, named)()
            return done
        key = spec.name, args[root_at] if len(args) > root_at else 0, args[at].nbytes
        if key in group.calls:
            group.calls[key] += 1
        else:
            group.called(*key)
        return done

    return call


def _places(spec: CallSpec) -> tuple[int, int]:
    """Where among the arguments the message stands that says all, and the root; far away where there is none."""
    alone = {"Gatherv": 0, "Allgatherv": 0}.get(spec.name, spec.sized_by)
    root = spec.parameters.index("root") if spec.rooted else 99
    return 99 if alone is None else alone, root


def _count(group: Group, spec: CallSpec, args: tuple[Any, ...], named: dict[str, Any]) -> Callable[[], None]:
    """What counts a call; nothing is counted of one that we cannot read and that the library took all the same."""
    given = {**DEFAULTS, **dict(zip(spec.parameters, args, strict=False)), **named}
    arguments, root = tuple(given.get(one) for one in spec.parameters), int(given.get("root") or 0)
    try:
        if spec.counts is not Counts.EQUAL and spec.form is Form.ALLTOALL:
            return _count_parts(group, spec, _parts(spec, arguments, group.size))
        if spec.name == "Scatterv":
            lengths = _parts(spec, arguments, group.size) if group.rank == root else np.zeros(0, dtype=np.int64)
            return _count_parts(group, spec, lengths)
        size = _size(spec, arguments, group)
    except Exception:
        size = 0
    return lambda: group.called(spec.name, root, size)


def _size(spec: CallSpec, arguments: tuple[Any, ...], group: Group) -> int:
    """Bytes of a call as `counting.asked` takes them."""
    if spec.name in ("Gatherv", "Allgatherv"):
        if is_in_place(arguments[0]):
            return 0 if spec.rooted else int(_parts(spec, arguments, group.size)[group.rank])
        return block(arguments[0], readonly=True).size
    size = nbytes(spec, arguments, group.size)
    return size * group.size if spec.name in IN_ALL_BLOCKS else size


def _parts(spec: CallSpec, arguments: tuple[Any, ...], number: int) -> NDArray[np.int64]:
    """Bytes of the parts of what a rank sends; in place these are as long as what it gets."""
    message = arguments[1] if is_in_place(arguments[0]) else arguments[0]
    each = (
        typed(message, number, True)
        if spec.counts is Counts.TYPED
        else Pieces.of(vector(message, number, readonly=True))
    )
    return np.array([one[1] * one[2].Get_size() if one else 0 for one in each.messages], dtype=np.int64)


def _count_parts(group: Group, spec: CallSpec, lengths: NDArray[np.int64]) -> Callable[[], None]:
    others = np.array([rank for rank in range(len(lengths)) if rank != group.rank], dtype=np.int64)
    units, volume = group[others], lengths[others]
    mean = int(lengths.sum()) // max(len(lengths), 1)

    def count() -> None:
        group.owner.add("C", units, volume)
        group.owner.note(spec.name, group.size, mean)

    return count


def _collective_later(native: Method, counters: Counters, group_of: GroupOf, spec: CallSpec) -> Method:
    def prepare(self: Any, *args: Any, **named: Any) -> Any:
        request = native(self, *args, **named)
        return _counted(request, _count(_group(self, counters, group_of), spec, args, named))

    return prepare


def _of_objects(native: Method, counters: Counters, group_of: GroupOf, spec: CallSpec) -> Method:
    """Objects are pickled once more to know their length."""
    parameters = tuple(one for one in spec.parameters if one != "recvbuf")

    def call(self: Any, *args: Any, **named: Any) -> Any:
        given = dict(zip(parameters, args, strict=False))
        value, root = next(iter({**given, **named}.values()), ()), int({**given, **named}.get("root", 0))
        done = native(self, *args, **named)
        group = _group(self, counters, group_of)
        if spec.form is Form.ALLTOALL or (spec.form is Form.SCATTER and group.rank == root):
            _count_parts(group, spec, np.array([length_of(one) for one in value], dtype=np.int64))()
        elif spec.form in (Form.NOTHING, Form.SCATTER) or (spec.form is Form.BROADCAST and group.rank != root):
            group.called(spec.name, root, 0)
        else:
            group.called(spec.name, root, length_of(value) * (group.size if spec.name in IN_ALL_BLOCKS else 1))
        return done

    return call


def _neighbours(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    def call(self: Any, sendbuf: Any, recvbuf: Any) -> Any:
        done = native(self, sendbuf, recvbuf)
        _count_neighbours(native.__name__, self, _group(self, counters, group_of), sendbuf)()
        return done

    return call


def _neighbours_later(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    def prepare(self: Any, sendbuf: Any, recvbuf: Any, *info: Any) -> Any:
        request = native(self, sendbuf, recvbuf, *info)
        count = _count_neighbours(native.__name__, self, _group(self, counters, group_of), sendbuf)
        return _counted(request, count)

    return prepare


def _count_neighbours(name: str, comm: Any, group: Group, sendbuf: Any) -> Callable[[], None]:
    """Each rank sends a part, or all to each, along its edges in the communicator's topology."""
    edges = np.array(comm.outedges, dtype=np.int64)
    if "alltoallw" in name:
        lengths = _parts(CALLS["Alltoallw"], (sendbuf,), len(edges))
    elif "alltoallv" in name:
        lengths = _parts(CALLS["Alltoallv"], (sendbuf,), len(edges))
    else:
        whole = bytes_of(sendbuf)
        lengths = np.full(len(edges), whole // max(len(edges), 1) if "alltoall" in name else whole)
    units = group[edges[edges >= 0]]
    return lambda: group.owner.add("C", units, lengths[edges >= 0])


def _neighbour_objects(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    def call(self: Any, sendobj: Any) -> Any:
        done = native(self, sendobj)
        edges = np.array(self.outedges, dtype=np.int64)
        each = sendobj if "alltoall" in native.__name__ else [sendobj] * len(edges)
        lengths = np.array([length_of(one) for one in each], dtype=np.int64)
        counters.add("C", _group(self, counters, group_of)[edges[edges >= 0]], lengths[edges >= 0])
        return done

    return call
