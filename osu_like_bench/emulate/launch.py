"""Command lines of mpirun, for both MPI libraries, that start a job on emulated hosts."""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from zlib import crc32

import numpy as np

from topompi.errors import BenchmarkError
from topompi.inputs.programs import run_program
from topompi.mapping import place
from topompi.topology import Fabric, Routes, TopologyInterface
from topompi.views.coordinates import write_coordinates

from .agent import HEAD, agent_path, enter
from .peers import PEERS
from .records import NetworkRecord, put

__all__ = ["Launch", "command_line", "coordinates", "find_peer", "leaf_cyclic", "mpirun_of", "program", "rank_hosts"]

OURS = "osu_like_bench"
ORDERS = "block, cyclic, leaf-cyclic or random:SEED"


@dataclass(frozen=True)
class Launch:
    """A job to start with mpirun on emulated hosts.

    :param words: program and arguments.
    :param peer: name of an MPI library with settings, a key of ``PEERS``.
    :param mpirun: path of the launcher.
    :param hosts: host of each rank.
    :param placement: options of mpirun that place the ranks in another way: mpirun is then told only the number of
        ranks (slots) of each host in ``hosts``. If empty, rank i is on ``hosts[i]``.
    """

    words: Sequence[str]
    peer: str
    mpirun: str
    hosts: Sequence[str]
    placement: Sequence[str] = ()


def rank_hosts(
    fabric: Fabric, ranks: int | None = None, ppn: int | str | None = None, order: str = "block"
) -> list[str]:
    """Place ranks on the hosts of a fabric; return the host name of each rank.

    :param fabric: the emulated fabric.
    :param ranks: number of ranks; if it is None, as many as fit on all hosts.
    :param ppn: number of ranks per host; only the first hosts are used if they are enough for all ranks. If it is None,
        it is the smallest number with which the hosts are enough. A text such as ``3/1/4/2`` repeats over all hosts:
        the first host has 3 ranks, the second 1, the third 4, the fourth 2, the fifth 3, and so on.
    :param order: ``block``, ``cyclic`` over the hosts, ``leaf-cyclic`` (successive ranks on successive leaf switches),
        or ``random:SEED``.
    :raises BenchmarkError: if there are too few hosts, or the order is unknown.
    """
    if isinstance(ppn, str):
        counts = _counts(ppn)
        if len(counts) > 1:
            return _uneven(fabric, counts, ranks, order)
        ppn = counts[0]
    ppn = ppn or -(-(ranks or fabric.num_hosts) // fabric.num_hosts)
    ranks = ranks or ppn * fabric.num_hosts
    used = -(-ranks // ppn)
    if used > fabric.num_hosts:
        raise BenchmarkError(f"-n: expecting at most {ppn * fabric.num_hosts} ranks at {ppn} a host, got {ranks}")
    hosts = list(fabric.hosts[:used])
    if order == "leaf-cyclic":
        hosts, order = leaf_cyclic(fabric, hosts), "cyclic"
    return _placed(ranks, hosts, order)


def _counts(ppn: str) -> list[int]:
    """Convert a text such as ``3/1/4/2``, the numbers of ranks of successive hosts, to these numbers."""
    words = ppn.split("/")
    if not all(word.isascii() and word.isdecimal() and int(word) for word in words):
        raise BenchmarkError(f"--ppn: expecting a number of ranks, or several as 3/1/4/2, got {ppn!r}")
    return list(map(int, words))


def _uneven(fabric: Fabric, counts: list[int], ranks: int | None, order: str) -> list[str]:
    """Return the host name of each rank, if the hosts have the numbers of ranks in ``counts`` in turn."""
    slots = [host for host, count in zip(fabric.hosts, cycle(counts), strict=False) for _ in range(count)]
    if order.endswith("cyclic"):
        raise BenchmarkError(f"--order: expecting block or random:SEED for hosts with different ranks, got {order!r}")
    if ranks not in (None, len(slots)):
        raise BenchmarkError(f"-n: expecting {len(slots)} ranks on hosts with {counts} by turns, got {ranks}")
    return _placed(len(slots), slots, order)


def _placed(ranks: int, hosts: list[str], order: str) -> list[str]:
    try:
        return place(ranks, hosts, order)
    except ValueError:
        raise BenchmarkError(f"--order: expecting {ORDERS}, got {order!r}") from None


def leaf_cyclic(fabric: Fabric, hosts: Sequence[str]) -> list[str]:
    """Reorder hosts: one of each leaf switch in turn, leaving out leaf switches whose hosts are used up."""
    leaf = np.array([int(fabric.adapter_leaf[fabric.host_adapters[fabric.host_index[host]][0]]) for host in hosts])
    turn = np.array([int((leaf[:index] == of).sum()) for index, of in enumerate(leaf)])
    return [hosts[index] for index in np.lexsort((leaf, turn))]


def coordinates(routes: Routes, hosts: Sequence[str]) -> str:
    """Return the text of MPICH's coordinates file, which has each rank's position on the fabric.

    :param routes: the emulated routes.
    :param hosts: host of each rank.
    """
    return write_coordinates(TopologyInterface.place(list(hosts), routes))


def command_line(job: Launch, state: NetworkRecord) -> list[str]:
    """Write mpirun's list of hosts into a file, and return the command line that starts the job.

    The job starts from the network's head, a namespace without ranks. Ranks are not bound to cores, because all hosts
    share the processors.
    """
    peer = PEERS[job.peer]
    text = "\n".join(_listed(job)) + "\n"
    listed = state.path / f"hosts-{crc32(text.encode()):08x}"
    put(listed, text)
    where = _open_mpi(job, listed, state) if peer.vendor == "Open MPI" else _mpich(job, listed, state)
    return enter(state, HEAD, [job.mpirun, *where, *peer.options, "-n", str(len(job.hosts)), *job.words])


def _listed(job: Launch) -> list[str]:
    """Return the lines of mpirun's list of hosts: one per rank; or, if mpirun's options place ranks, one per host."""
    if not job.placement:
        return list(job.hosts)
    slots = " slots=" if PEERS[job.peer].vendor == "Open MPI" else ":"
    return [f"{host}{slots}{count}" for host, count in Counter(job.hosts).items()]


def _open_mpi(job: Launch, listed: Path, state: NetworkRecord) -> list[str]:
    agent = ["--prtemca", "plm_ssh_agent", str(agent_path(state))]
    return [*agent, "--hostfile", str(listed), *(job.placement or ("--map-by", "seq", "--bind-to", "none"))]


def _mpich(job: Launch, listed: Path, state: NetworkRecord) -> list[str]:
    agent = ["-launcher", "ssh", "-launcher-exec", str(agent_path(state))]
    return [*agent, "-f", str(listed), *job.placement]


def find_peer(name: str | None, python: str) -> str:
    """Return the name of the MPI library with settings (peer) to run a job with.

    :param name: a key of ``PEERS``; if it is None, the default settings of the library to which the Python's mpirun
        belongs.
    :param python: path of the interpreter.
    :raises BenchmarkError: if the name is unknown, or the Python's mpirun belongs to another library.
    """
    if name is not None and name not in PEERS:
        raise BenchmarkError(f"--mpi: expecting one of {', '.join(PEERS)}, got {name!r}")
    vendor = _vendor(mpirun_of(python))
    if name is None:
        return "openmpi" if vendor == "Open MPI" else "mpich"
    if PEERS[name].vendor != vendor:
        wanted = PEERS[name].vendor
        raise BenchmarkError(
            f"--mpi {name}: expecting --python of an environment with {wanted}, got {python} ({vendor})"
        )
    return name


def mpirun_of(python: str) -> str:
    """Return the path of the mpirun in a Python interpreter's folder, else of the first mpirun in ``PATH``.

    :param python: path of the interpreter.
    :raises BenchmarkError: if there is no mpirun.
    """
    near = Path(python).parent / "mpirun"
    found = str(near) if near.exists() else shutil.which("mpirun")
    if found is None:
        raise BenchmarkError(f"emulate: expecting mpirun beside {python} or on the path, got none")
    return found


@cache
def _vendor(mpirun: str) -> str:
    said = run_program([mpirun, "--version"], "its version", 60, BenchmarkError, check=False).stdout
    return "Open MPI" if b"Open MPI" in said else "MPICH"


def program(words: Sequence[str], python: str) -> list[str]:
    """Return the command of a rank for a Python script, options (``-m``, ``-c``), a program, or a module's name.

    :param words: the script, options, program or module, and its arguments.
    :param python: path of the interpreter.
    :raises BenchmarkError: if there are no words.
    """
    if not words:
        raise BenchmarkError("emulate run: expecting a program after --, got none")
    first = words[0]
    if first.startswith("-") or first.endswith(".py"):
        return [python, *words]
    is_module = shutil.which(first) is None and importlib.util.find_spec(first.partition(".")[0]) is not None
    if is_module or first == OURS:  # run as a module, because a console script may belong to another Python
        return [python, "-m", *words]
    return list(words)
