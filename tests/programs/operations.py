"""The rows of the matrix: every collective operation as data, and its arguments in every spelling that mpi4py takes.

A new operation is one line of ``OPERATIONS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

# These three say which algorithms there are; nothing else here looks below ``topompi.Intracomm``.
from topompi.mpi.execution.eligibility import can_run
from topompi.mpi.execution.sizes import needs_of
from topompi.schedules import ALGORITHMS
from topompi.schedules.segments import cuttable

OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
NONE, OWN, ALL = "none", "one block", "a block of each rank"  # what a message holds


@dataclass(frozen=True)
class Operation:
    """One collective operation.

    :param method: mpi4py's name of it.
    :param collective: whose schedules it may run; one without any has the column ``native`` alone.
    :param send: what the send buffer holds; likewise ``receive``, for ``Bcast`` the only buffer.
    :param rooted: whether it has a root, which alone has the buffer that holds ``ALL``, or the result of a reduction.
    :param reduces: whether it has an operation.
    :param blocks: ``equal``, ``uneven`` (a v-form), or ``typed`` (a datatype for each block).
    """

    method: str
    collective: str
    send: str = NONE
    receive: str = NONE
    rooted: bool = False
    reduces: bool = False
    blocks: str = "equal"


OPERATIONS = (
    Operation("Barrier", "barrier"),
    Operation("Bcast", "bcast", NONE, OWN, rooted=True),
    Operation("Gather", "gather", OWN, ALL, rooted=True),
    Operation("Gatherv", "gather", OWN, ALL, rooted=True, blocks="uneven"),
    Operation("Scatter", "scatter", ALL, OWN, rooted=True),
    Operation("Scatterv", "scatter", ALL, OWN, rooted=True, blocks="uneven"),
    Operation("Allgather", "allgather", OWN, ALL),
    Operation("Allgatherv", "allgather", OWN, ALL, blocks="uneven"),
    Operation("Alltoall", "alltoall", ALL, ALL),
    Operation("Alltoallv", "alltoall", ALL, ALL, blocks="uneven"),
    Operation("Alltoallw", "alltoall", ALL, ALL, blocks="typed"),
    Operation("Reduce", "reduce", OWN, OWN, rooted=True, reduces=True),
    Operation("Allreduce", "allreduce", OWN, OWN, reduces=True),
    Operation("Reduce_scatter_block", "reduce_scatter", ALL, OWN, reduces=True),
    Operation("Reduce_scatter", "reduce_scatter", ALL, OWN, reduces=True, blocks="uneven"),
    Operation("Scan", "scan", OWN, OWN, reduces=True),
    Operation("Exscan", "exscan", OWN, OWN, reduces=True),
)


@cache
def algorithms(operation: Operation) -> list[str]:
    """The columns of an operation: native, every schedule, and every schedule that can be cut, twice."""
    cut = [f"{name}/{nbytes}" for name in cuttable(operation.collective) for nbytes in (3, 16)]
    names = ["native", *ALGORITHMS.get(operation.collective, ()), *cut]
    return [name for name in names if can_run(operation.method, name)]


# --- what the elements of messages are -----------------------------------------------------------------------------


def multiply(low: Any, high: Any, datatype: MPI.Datatype) -> None:
    """Products of 2 x 2 matrices modulo 101: associative, and not commutative."""
    a, b = (np.frombuffer(data, np.int64).reshape(-1, 2, 2) for data in (low, high))
    b[:] = a @ b % 101


def compose(low: Any, high: Any, datatype: MPI.Datatype) -> None:
    """Affine maps x -> a x + b modulo 97, each as 97 a + b: associative, and not commutative."""
    one, two = (np.frombuffer(data, np.int64) for data in (low, high))
    a, b, c, d = one // 97, one % 97, two // 97, two % 97
    two[:] = a * c % 97 * 97 + (a * d + b) % 97


def largest(low: Any, high: Any, datatype: MPI.Datatype) -> None:
    """As ``MPI.MAX``, in Python."""
    a, b = np.frombuffer(low, np.int64), np.frombuffer(high, np.int64)
    np.maximum(a, b, out=b)


class Content(NamedTuple):
    """What elements are.

    :param kind: numpy's type of an item.
    :param items: of an element.
    :param datatype: of an element; by default the one of the item.
    :param op: of reductions.
    """

    kind: str
    items: int = 1
    datatype: MPI.Datatype = MPI.DATATYPE_NULL
    op: MPI.Op = MPI.OP_NULL

    @property
    def plain(self) -> bool:
        """Whether mpi4py finds the datatype by itself."""
        return self.datatype == MPI.DATATYPE_NULL

    @property
    def type(self) -> MPI.Datatype:
        """The datatype of an element."""
        return MPI.Datatype.fromcode(np.dtype(self.kind).char) if self.plain else self.datatype

    def values(self, who: int, elements: int) -> np.ndarray[Any, Any]:
        """Values that tell ranks and places apart; reductions of them are exact in any order."""
        count = elements * self.items
        numbers = (np.arange(count) * 7 + 13 * who) % 31 + 1
        if self.datatype == MPI.DOUBLE_INT:
            pairs = np.zeros(elements, np.dtype([("value", "f8"), ("place", "i4")], align=True))
            pairs["value"], pairs["place"] = numbers[:elements] % 5, who
            return pairs.view(np.uint8)
        if self.op == COMPOSE:
            numbers = 97 * numbers + np.arange(count) * 5 % 97 + who
        return (numbers % 2 if self.kind == "?" else numbers).astype(self.kind)


COMPOSE, LARGEST = MPI.Op.Create(compose, commute=False), MPI.Op.Create(largest, commute=True)
CONTENTS = {
    "doubles": Content("d"),
    "short integers": Content("i2"),
    "unsigned bytes": Content("u1"),
    "truth values": Content("?"),
    "complex numbers": Content("c16"),
    "untyped bytes": Content("u1", datatype=MPI.BYTE),
}
REDUCED = {
    "sum": Content("d", op=MPI.SUM),
    "product": Content("i4", op=MPI.PROD),
    "largest": Content("i2", op=MPI.MAX),
    "largest, in Python": Content("i8", op=LARGEST),
    "least and where": Content("u1", 16, MPI.DOUBLE_INT, MPI.MINLOC),
    "affine maps": Content("i8", op=COMPOSE),
    "matrices": Content("i8", 4, MPI.INT64_T.Create_contiguous(4).Commit(), MPI.Op.Create(multiply, commute=False)),
}

# --- how messages are spelt ----------------------------------------------------------------------------------------

ANY_TYPE = ("typed", "counted and typed", "displaced", "four")  # these say the datatype
BY_ITSELF = ("array", "letter", "counted")  # mpi4py finds it
DERIVED = ("gapped", "contiguous", "columns", "bottom")
BLOCK = (*ANY_TYPE, *BY_ITSELF, *DERIVED)
VECTOR = ("counts, typed", "placed", "placed, four", "placed, gapped")
VECTOR_BY_ITSELF = ("counts", "counts, none", "placed in arrays", "shared out", "strided")
TYPED = ("rows to columns", "integers as bytes", "four")
LENGTHS = {"zero": 0, "one": 1, "few": 6, "many": 40, "long": 3001}


class Speller:
    """Spells messages as mpi4py takes them, and has the datatypes that it made for them."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self._types: list[MPI.Datatype] = []
        self._memory: list[Any] = []  # what messages from MPI.BOTTOM point to

    def free(self) -> None:
        """Free the datatypes."""
        for one in self._types:
            one.Free()

    def keep(self, datatypes: Sequence[MPI.Datatype]) -> None:
        """Free these datatypes too."""
        self._types.extend(datatypes)

    def _made(self, datatype: MPI.Datatype) -> MPI.Datatype:
        self._types.append(datatype)
        return datatype.Commit()

    def gapped(self) -> MPI.Datatype:
        """An element followed by a hole of its size."""
        return self._made(self.content.type.Create_resized(0, 2 * self.content.type.Get_extent()[1]))

    def block(self, spelling: str, who: int, each: int, blocks: int) -> tuple[Any, np.ndarray[Any, Any]]:
        """A message of so many blocks of so many elements each; what its memory holds depends on ``who``."""
        kind, wide = self.content.type, spelling in ("gapped", "columns")
        before, behind = (3, 2) if spelling in ("displaced", "four") else (0, 0)
        memory = self.content.values(who, (before + each * blocks + behind) * (2 if wide else 1))
        letter = np.dtype(self.content.kind).char
        if spelling == "contiguous":
            return [memory, 1, self._made(kind.Create_contiguous(each))], memory
        if spelling == "columns":
            columns = kind.Create_vector(each, 1, 2)
            self._types.append(columns)
            return [memory, 1, self._made(columns.Create_resized(0, 2 * each * kind.Get_extent()[1]))], memory
        if spelling == "bottom":
            absolute = kind.Create_hindexed([each], [MPI.Get_address(memory)])
            self._types.append(absolute)
            self._memory.append(memory)
            return [MPI.BOTTOM, 1, self._made(absolute.Create_resized(0, each * kind.Get_extent()[1]))], memory
        if spelling == "gapped":
            return [memory, each, self.gapped()], memory
        messages = {
            "array": memory,
            "typed": [memory, kind],
            "letter": [memory, letter],
            "counted": [memory, each],
            "counted and typed": [memory, each, kind],
            "displaced": [memory, (each, before), kind],
            "four": [memory, each, before, kind],
        }
        return messages[spelling], memory

    def vector(
        self, spelling: str, who: int, counts: Sequence[int], rng: np.random.Generator
    ) -> tuple[Any, np.ndarray[Any, Any]]:
        """A message of blocks of these numbers of elements, in order or in places drawn with gaps between them."""
        kind, array = self.content.type, np.asarray(counts)
        order, gaps = np.arange(len(array)), np.zeros(len(array), int)
        if spelling.startswith("placed"):
            order, gaps = rng.permutation(len(array)), rng.integers(0, 3, len(array))
        ends = np.cumsum((array + gaps)[order])
        displs = np.zeros(len(array), int)
        displs[order] = ends - array[order]
        span = int(ends[-1]) if spelling != "strided" else 5 * len(array)
        memory = self.content.values(who, span * (2 if spelling == "placed, gapped" else 1))
        some, places = [int(one) for one in counts], displs.tolist()
        messages = {
            "counts": lambda: [memory, some],
            "counts, none": lambda: [memory, (some, None)],
            "counts, typed": lambda: [memory, some, kind],
            "placed": lambda: [memory, (some, places), kind],
            "placed, four": lambda: [memory, some, places, kind],
            "placed in arrays": lambda: [memory, (array, displs), np.dtype(self.content.kind).char],
            "placed, gapped": lambda: [memory, (some, places), self.gapped()],
            "shared out": lambda: memory,
            "strided": lambda: [memory, 2, 5, kind],
        }
        return messages[spelling](), memory


# --- the factors of an operation -----------------------------------------------------------------------------------


def spellings(operation: Operation, side: str) -> list[str]:
    """How the message on one side can be spelt."""
    holds = operation.send if side == "send" else operation.receive
    if holds == NONE or operation.blocks == "typed":
        return []
    if operation.reduces:
        return [*ANY_TYPE, *BY_ITSELF]
    if operation.blocks == "uneven" and holds == ALL:
        return [*VECTOR, *VECTOR_BY_ITSELF]
    # Open MPI chooses its allgatherv by the size of this rank's datatype: ranks that have others wait for ever.
    hangs = DERIVED[1:] if OPEN_MPI and operation.method == "Allgatherv" else ()
    return [one for one in BLOCK if one not in hangs]


def factors(operation: Operation, placements: Sequence[str], sizes: Sequence[int]) -> dict[str, Sequence[Any]]:
    """What a case of an operation is chosen from."""
    specs = [f"{side} {one}" for side in ("send", "receive") for one in spellings(operation, side)]
    contents = list(REDUCED if operation.reduces else CONTENTS)
    lengths = [*LENGTHS] if operation.blocks == "equal" else ["zero", "uneven", "even", "nearly even"]
    if operation.blocks == "typed":
        specs, contents, lengths = [*TYPED], ["doubles"], ["zero", "uneven", "even"]
    if operation.receive != NONE and operation.method != "Bcast":
        specs.append("in place")
    if operation.receive == NONE:
        specs, contents, lengths = ["nothing"], ["doubles"], ["zero"]
    specs += {"Bcast": ["receive read-only"], "Reduce_scatter": ["counts not given"]}.get(operation.method, [])
    return {
        "algorithm": algorithms(operation),
        "spec": specs,
        "root": ["first", "middle", "last"] if operation.rooted else ["none"],
        "placement": list(placements),
        "content": contents,
        "length": lengths,
        "size": list(sizes),
        "form": ["blocking", "persistent", "non-blocking"],
    }


def content_of(operation: Operation, name: str) -> Content:
    """The content of this name."""
    return (REDUCED if operation.reduces else CONTENTS)[name]


def fits(spelling: str, content: Content | None, length: str | None) -> bool:
    """Whether a message of such elements, or of such a length, can be spelt so."""
    if content is not None and not content.plain and spelling in (*BY_ITSELF, *VECTOR_BY_ITSELF):
        return False
    if length is None:
        return True
    if spelling in DERIVED[1:]:
        return length not in ("zero", "uneven")  # of which some are zero: nobody sends a datatype of nothing
    if spelling in ("strided", "shared out"):
        return length == "even" or (spelling == "shared out" and length == "nearly even")
    return True


def excluded(operation: Operation, both: Mapping[str, Any]) -> bool:
    """Whether two values cannot be in one case: what MPI, mpi4py or the table of algorithms does not allow."""
    content = content_of(operation, both["content"]) if "content" in both else None
    if "algorithm" in both and content is not None and operation.reduces:
        return not can_run(operation.method, both["algorithm"], needs_of(content.op))
    if "spec" not in both:
        return False
    return not fits(both["spec"].partition(" ")[2], content, both.get("length"))


# --- the arguments of one rank -------------------------------------------------------------------------------------


class Call(NamedTuple):
    """The arguments of one rank's call, and the memory to look at afterwards."""

    arguments: tuple[Any, ...]
    memory: np.ndarray[Any, Any]
    speller: Speller
    shown: slice = slice(None)

    def seen(self) -> bytes:
        """What is to be equal."""
        return self.memory[self.shown].tobytes()


def root_of(case: Mapping[str, Any]) -> int:
    """The root of a case."""
    return {"none": 0, "first": 0, "middle": case["size"] // 2, "last": case["size"] - 1}[case["root"]]


def counts_of(case: Mapping[str, Any], more: int) -> np.ndarray[Any, Any]:
    """Elements that each rank (row) has for each (column), in the v-forms."""
    source, target = np.indices((case["size"], case["size"]))
    in_place = case["spec"] == "in place"  # what two ranks exchange is then of one size
    if case["length"] == "uneven":
        counts = (3 * source + 5 * target + more) % 7
        return counts + counts.T if in_place else counts
    each = 0 if case["length"] == "zero" else 2
    return np.full(source.shape, each) + (target == 0) * (case["length"] == "nearly even" and not in_place)


class _Maker:
    """Makes the arguments of one rank's call of a case; equal ones for equal seeds, which all ranks have alike."""

    def __init__(self, operation: Operation, case: Mapping[str, Any], rank: int, seed: Sequence[int]) -> None:
        self.operation, self.case, self.rank = operation, case, rank
        self.root, self.is_in_place = root_of(case), case["spec"] == "in place"
        self.shared, self.own = np.random.default_rng(seed), np.random.default_rng([*seed, rank])
        self.content = content_of(operation, case["content"])
        self.speller = Speller(self.content)
        self.counts = None if operation.blocks == "equal" else counts_of(case, int(self.shared.integers(7)))

    def spelling(self, side: str) -> str:
        """The case's on its side; on the other one each rank's own."""
        on, _, spelling = self.case["spec"].partition(" ")
        if on == side and spelling != "read-only":
            return str(spelling)
        if self.is_in_place and self.operation.collective == "reduce_scatter":
            return "counted and typed"
        some = [one for one in spellings(self.operation, side) if fits(one, self.content, self.case["length"])]
        return str(self.own.choice(some))

    def message(self, side: str, who: int, is_all: bool) -> tuple[Any, np.ndarray[Any, Any]]:
        """A message of one block, or of one of each rank."""
        spelling, size = self.spelling(side), self.case["size"]
        if self.counts is None:
            return self.speller.block(spelling, who, LENGTHS[self.case["length"]], size if is_all else 1)
        if not is_all:
            return self.speller.block(spelling, who, int(self.counts[0, self.rank]), 1)
        if self.operation.reduces:
            return self.speller.block(spelling, who, int(self.counts[0].sum()), 1)
        row = 0 if OWN in (self.operation.send, self.operation.receive) else self.rank
        counts = (
            self.counts[:, row] if side == "receive" and row == self.rank and self.is_exchange else self.counts[row]
        )
        return self.speller.vector(spelling, who, counts, self.own)

    @property
    def is_exchange(self) -> bool:
        """Whether every rank has a block for every rank."""
        return self.operation.send == self.operation.receive == ALL

    def behind(self) -> tuple[Any, ...]:
        """The arguments behind the messages."""
        more: tuple[Any, ...] = ()
        if self.operation.method == "Reduce_scatter" and self.counts is not None:
            is_given = self.is_in_place or (self.case["spec"] != "counts not given" and bool(self.shared.integers(2)))
            more = (self.counts[0].tolist() if is_given else None,)
        if self.operation.reduces:
            more += (self.content.op,)
        return (*more, self.root) if self.operation.rooted else more

    def call(self) -> Call:
        """The arguments, and the memory to look at."""
        operation, is_root = self.operation, self.rank == self.root
        if operation.blocks == "typed":
            return self.typed()
        more = self.behind()
        if operation.receive == NONE:
            return Call((), np.zeros(1), self.speller)
        if operation.send == NONE:
            one, memory = self.message("receive", 0 if is_root else 50, is_all=False)
            memory.flags.writeable = not (is_root and self.case["spec"] == "receive read-only")
            return Call((one, *more), memory, self.speller)
        # In a rooted operation one rank has the buffer that holds all, or the result.
        has_send = not operation.rooted or operation.send != ALL or is_root
        has_receive = not operation.rooted or operation.send == ALL or is_root
        if self.is_in_place and (is_root or not operation.rooted):
            if operation.rooted and operation.send == ALL:
                sent, memory = self.message("send", self.rank, is_all=True)
                return Call((sent, MPI.IN_PLACE, *more), memory, self.speller)
            received, memory = self.message(
                "receive", 50 + self.rank, is_all=ALL in (operation.send, operation.receive)
            )
            return Call((MPI.IN_PLACE, received, *more), memory, self.speller, self.own_share())
        sent = self.message("send", self.rank, operation.send == ALL)[0] if has_send else None
        received, memory = self.message("receive", 50 + self.rank, operation.receive == ALL)
        return Call((sent, received if has_receive else None, *more), memory, self.speller)

    def own_share(self) -> slice:
        """What a call in place defines of its buffer: behind the share of a reduce-scatter is anybody's."""
        if self.operation.collective != "reduce_scatter":
            return slice(None)
        share = LENGTHS[self.case["length"]] if self.counts is None else int(self.counts[0, self.rank])
        return slice(share * self.content.items)

    def typed(self) -> Call:
        """An alltoall of blocks with datatypes of their own."""
        size, spec = self.case["size"], self.case["spec"]
        assert self.counts is not None
        sent, received, starts = self.counts[self.rank], self.counts[:, self.rank], np.arange(size)
        most = int(self.counts.max(initial=1))
        if spec == "rows to columns":  # of a matrix of as many columns as there are ranks
            columns = [MPI.DOUBLE.Create_vector(max(int(count), 1), 1, size).Commit() for count in received]
            self.speller.keep(columns)
            send, memory = (self.content.values(who, most * size) for who in (self.rank, 50 + self.rank))
            into = [memory, ((received > 0).astype(int), 8 * starts), columns]
            return Call(([send, (sent, 8 * most * starts), [MPI.DOUBLE] * size], into), memory, self.speller)
        if spec == "integers as bytes":  # which even ranks receive as integers and odd ones as bytes
            kinds, scales = (MPI.INT, MPI.BYTE), (1, 4)
            send, memory = (((np.arange(9 * size * size) + 7 * who) % 99).astype("i4") for who in (self.rank, 50))
            displs = 36 * size * starts
            types = [kinds[rank % 2] for rank in range(size)], [kinds[self.rank % 2]] * size
            out = [send, (sent * [scales[rank % 2] for rank in range(size)], displs), types[0]]
            return Call((out, [memory, (received * scales[self.rank % 2], displs), types[1]]), memory, self.speller)
        send, memory = (self.content.values(who, most * size) for who in (self.rank, 50 + self.rank))
        places, types_of_all = (8 * most * starts).tolist(), [MPI.DOUBLE] * size
        into = [memory, received.tolist(), places, types_of_all]
        out = MPI.IN_PLACE if self.is_in_place else [send, sent.tolist(), places, types_of_all]
        return Call((out, into), memory, self.speller)


def make_call(operation: Operation, case: Mapping[str, Any], rank: int, seed: Sequence[int]) -> Call:
    """One rank's call of a case; equal calls for equal seeds, which all ranks have alike."""
    return _Maker(operation, case, rank, seed).call()
