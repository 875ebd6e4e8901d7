"""The collectives of other MPI libraries (peers) as traces for SimGrid, which has its own copies of their algorithms.

In a trace, which lists the actions of one rank, a collective is one action.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.writing import open_output, write_text

from .traces import BYTE, MOST_BYTES

__all__ = ["ACTIONS", "PEERS", "Peer"]

PEERS = ("mvapich2", "mpich", "ompi", "impi")
# By collective, its action in a trace: name, bytes, operations of the reduction (0, because reductions take no time in
# simulations of topompi's schedules), root, types. {each} stands for the bytes of every rank.
ACTIONS = {
    "bcast": "bcast {n} {root} {byte}",
    "gather": "gather {n} {n} {root} {byte} {byte}",
    "scatter": "scatter {n} {n} {root} {byte} {byte}",
    "allgather": "allgather {n} {n} {byte} {byte}",
    "reduce": "reduce {n} 0 {root} {byte}",
    "reduce_scatter": "reducescatter {each} 0 {byte}",
    "allreduce": "allreduce {n} 0 {byte}",
    "alltoall": "alltoall {n} {n} {byte} {byte}",
}
# SimGrid's two-level algorithms split the communicator by hosts at their first call, and then its parts, with messages
# round a ring of all ranks. This cost occurs once and would dominate the time of a small broadcast. Therefore another
# collective's two-level algorithm is called first, and then the timed collective. Alltoall has no two-level algorithm.
SETTING_UP = (("smpi/bcast:SMP_binary", f"bcast 1 0 {BYTE}"), ("smpi/allreduce:smp_binomial", f"allreduce 1 0 {BYTE}"))
ONE_LEVEL = ("alltoall",)


class Peer:
    """A collective of another library, written as traces for SimGrid.

    :param collective: a key of ``ACTIONS``.
    :param ranks: number of ranks.
    :param nbytes: bytes of one message: in bcast, reduce and allreduce the whole, in alltoall one rank's block for one
        other rank, in other collectives one rank's share.
    :param root: root of a rooted collective.
    :raises BenchmarkError: if the collective has no action, or the message has 2 GiB or more.
    """

    def __init__(self, collective: str, ranks: int, nbytes: int, root: int) -> None:
        if collective not in ACTIONS:
            raise BenchmarkError(f"simulate: expecting a peer's collective of {', '.join(ACTIONS)}, got {collective!r}")
        if not 1 <= nbytes <= MOST_BYTES:
            raise BenchmarkError(f"simulate: expecting messages of 1 byte to 2 GiB, got {nbytes} bytes")
        each = " ".join([str(nbytes)] * ranks) if collective == "reduce_scatter" else ""
        option, before = SETTING_UP[collective == "bcast"]
        self.ranks = ranks
        self.action = ACTIONS[collective].format(n=nbytes, root=root, byte=BYTE, each=each)
        self.warm_up = ["init", before, *([] if collective in ONE_LEVEL else [self.action])]
        self.option = f"--cfg={option}"

    def write_warm_up(self, folder: Path) -> Path:
        """Write traces of all ranks with an untimed call (warm-up); return the path of the file that lists the traces.

        :param folder: folder for the traces.
        """
        return _write(folder, [[*self.warm_up, "finalize"]] * self.ranks)

    def write(self, folder: Path, waits: Sequence[float]) -> Path:
        """Write traces of all ranks: warm-up, wait, timed call; return the path of the file that lists the traces.

        :param folder: folder for the traces.
        :param waits: seconds that each rank waits between warm-up and collective, shape (ranks,).
        """
        return _write(folder, [[*self.warm_up, f"sleep {wait:.9f}", self.action, "finalize"] for wait in waits])


def _write(folder: Path, actions: Sequence[Sequence[str]]) -> Path:
    trace, listing = folder / "ranks.txt", folder / "peer.list"
    with open_output(trace, encoding="ascii") as file:
        file.writelines(f"{rank} {line}\n" for rank, lines in enumerate(actions) for line in lines)
    write_text(listing, f"{trace.absolute()}\n")
    return listing
