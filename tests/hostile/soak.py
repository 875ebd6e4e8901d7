"""All collectives, splits, errors and frees at random for long, compared with native bit by bit.

``python -m tests.hostile.soak SECONDS [SEED] [--ranks N]`` starts a job of 5 ranks, or N, natively and then in each
mode, with an equal share of the seconds each; a job that fails or does not end in time makes it fail. All ranks draw
the same numbers, so the seed and the step of a failure, which are printed, are enough to repeat it. Open MPI 5.0 keeps
some memory of each persistent request of its own that is freed: the native job shows how much, and that is no leak of a
mode.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.hostile.modes import ENVIRONMENT, MODES, words, write_rules
from tests.support import mpi_job

MOST = 12  # communicators alive
LENGTHS = (0, 1, 2, 7, 64, 513, 5000)  # elements of a block
KINDS = ("i4", "i8", "f8", "u1")
SLACK = 16 << 10  # KiB that a rank may gain after a fifth of the time, besides what it gains natively
WARM = 500  # steps before memory is compared: a rank takes 22 to 27 MiB once, at the first schedule of some kinds


class Soak:
    """One rank's part: what is drawn is drawn alike on all ranks, but for what messages hold."""

    def __init__(self, world, seed):
        from mpi4py import MPI

        self.mpi, self.world = MPI, world
        self.rng = np.random.default_rng(seed)
        self.alive, self.done = [world.Dup()], Counter()
        self.plain = MPI.Intracomm(world).Dup()
        self.requests = []
        self.natives = 0  # persistent requests of the MPI library's own so far

    def step(self):
        """One action, drawn by weight."""
        actions = {self.collective: 30, self.make: 4, self.free: 4, self.misuse: 3, self.persist: 3}
        names = list(actions)
        weights = np.array(list(actions.values()), float)
        names[self.rng.choice(len(names), p=weights / weights.sum())]()

    def pick(self):
        """A living communicator; None where this rank is not in the one that was drawn."""
        return self.alive[self.rng.integers(len(self.alive))]

    def make(self):
        """A communicator of one of the kinds, from any living one."""
        kind, parent = self.rng.integers(9), self.pick()
        parts, order = int(self.rng.integers(1, 4)), int(self.rng.choice([-1, 1]))
        if len(self.alive) >= MOST:
            return
        made = self.mpi.COMM_NULL if parent is None else self._made(kind, parent, parts, order)
        self.alive.append(made if made != self.mpi.COMM_NULL else None)
        self.done["communicators"] += 1

    def _made(self, kind, parent, parts, order):
        rank, size = parent.rank, parent.size
        if kind == 0:
            return parent.Dup()
        if kind in (1, 2):
            return parent.Split(rank % parts, order * rank)
        if kind == 3:
            return parent.Create_cart([size], reorder=bool(parts % 2))
        if kind == 4:
            return parent.Split(self.mpi.UNDEFINED if rank == size - 1 and size > 1 else 0, 0)
        if kind == 5:
            return parent.Clone()
        if kind == 6:
            made, request = parent.Idup()
            request.Wait()
            return made
        with_last = parent.Get_group()
        group = with_last.Excl([0]) if size > 1 else with_last.Incl([0])
        made = parent.Create(group) if kind == 7 else parent.Create_group(group) if rank or size == 1 else None
        group.Free()
        with_last.Free()
        return self.mpi.COMM_NULL if made is None else made

    def free(self):
        """Free one, in one of the two ways."""
        at, small = 1 + int(self.rng.integers(MOST)), bool(self.rng.integers(2))
        if at >= len(self.alive):
            return
        comm = self.alive.pop(at)
        if comm is not None:
            comm.free() if small else comm.Free()
        self.done["frees"] += 1

    def collective(self):
        """A call on ours and the same on the MPI library's own handle."""
        drawn = self._drawn()
        comm = self.pick()
        if comm is not None:
            self._compare(comm, *drawn)
        self.done["calls"] += 1

    def _drawn(self):
        from topompi.mpi.execution.specs import CALLS

        methods = [name for name in CALLS if name not in ("Alltoallw",)]
        method = methods[self.rng.integers(len(methods))]
        return method, int(self.rng.choice(LENGTHS)), str(self.rng.choice(KINDS)), int(self.rng.integers(1 << 20))

    def _compare(self, comm, method, length, kind, number):
        native = self.mpi.Intracomm(comm)
        results = []
        for one in (native, comm):
            arguments, seen = self._arguments(one, method, length, kind, number)
            getattr(one, method)(*arguments)
            results.append([part.tobytes() for part in seen])
        assert results[0] == results[1], (method, length, kind, number, comm.size)

    def _arguments(self, comm, method, length, kind, number):
        from topompi.mpi.execution.specs import CALLS

        rank, size, root = comm.rank, comm.size, number % comm.size
        spec, op = CALLS[method], [self.mpi.SUM, self.mpi.MAX, self.mpi.MIN][number % 3]
        values = lambda n: ((np.arange(n) * 7 + 13 * rank + number) % 31).astype(kind)  # noqa: E731
        zeros = lambda n: np.zeros(n, kind)  # noqa: E731
        counts = [(length + 3 * one + number) % (length + 2) for one in range(size)]
        if method == "Barrier":
            return (), []
        if method == "Bcast":
            data = values(length) if rank == root else zeros(length)
            return (data, root), [data]
        whole = {"Gather": (1, 0), "Scatter": (0, 1), "Allgather": (1, 0), "Alltoall": (1, 1)}
        if method in whole:
            many_received, many_sent = whole[method]
            send = values(length * (size if many_sent else 1))
            receive = zeros(length * (size if many_received else 1))
        elif method in ("Gatherv", "Allgatherv"):
            send, receive = values(counts[rank]), zeros(sum(counts))
            return (send, [receive, counts], *([root] if spec.rooted else [])), [receive]
        elif method == "Scatterv":
            send, receive = values(sum(counts)), zeros(counts[rank])
            return ([send, counts], receive, root), [receive]
        elif method == "Alltoallv":
            mine = [(length + rank + one) % (length + 3) for one in range(size)]
            send, receive = values(sum(mine)), zeros(sum(mine))
            return ([send, mine], [receive, mine]), [receive]
        elif method == "Reduce_scatter_block":
            send, receive = values(length * size), zeros(length)
        elif method == "Reduce_scatter":
            send, receive = values(sum(counts)), zeros(counts[rank])
            return (send, receive, counts, op), [receive]
        else:
            send, receive = values(length), zeros(length)
        more = [*([op] if spec.reduces else []), *([root] if spec.rooted else [])]
        undefined = (method == "Exscan" and rank == 0) or (
            spec.rooted and spec.collective in ("gather", "reduce") and rank != root
        )
        return (send, receive, *more), [] if undefined else [receive]

    def misuse(self):
        """A call that is refused on all ranks, natively and by ours."""
        kind, comm = self.rng.integers(4), self.pick()
        self.done["errors"] += 1
        if comm is None:
            return
        data, other = np.zeros(4), np.zeros(4)
        calls = (
            lambda one: one.Allreduce(data, other, self.mpi.BAND),
            lambda one: one.Bcast([data, 2, self.mpi.DATATYPE_NULL]),
            lambda one: one.Allgather(np.zeros(3), np.zeros(2 * one.size + one.size + 1)),
            lambda one: one.Bcast(data, one.size),
        )
        refused = []
        for one in (self.mpi.Intracomm(comm), comm):
            try:
                calls[kind](one)
                refused.append("passed")
            except Exception as error:
                refused.append(type(error).__name__)
        assert refused[0] == refused[1], (kind, refused)

    def persist(self):
        """Start a persistent call now, and complete it some steps later; communicators come and go meanwhile."""
        length, comm = int(self.rng.choice(LENGTHS)), self.alive[0]
        if self.requests:
            request, send, receive = self.requests.pop()
            request.Wait()
            request.Free()
            expected = np.empty_like(receive)
            self.mpi.Intracomm(comm).Allreduce(send, expected)
            assert receive.tobytes() == expected.tobytes()
            self.done["persistent calls"] += 1
            return
        send = np.arange(length, dtype="i8") + comm.rank
        receive = np.zeros(length, "i8")
        request = comm.Allreduce_init(send, receive)
        self.natives += type(request) is self.mpi.Prequest
        request.Start()
        self.requests.append((request, send, receive))


def resident():
    """KiB of memory in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * (resource.getpagesize() >> 10)


def within(seconds, seed):
    """One job: ranks of ``MPI.COMM_WORLD``, which the launcher has made ours."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    soak, begin, before, natives = Soak(world, seed), time.monotonic(), 0, 0
    goes_on, steps = np.ones(1, bool), 0
    while goes_on[0]:
        try:
            soak.step()
        except BaseException:
            print(f"rank {world.rank}: seed {seed}, step {steps}", file=sys.stderr, flush=True)
            raise
        steps += 1
        if steps % 100 == 0:
            goes_on[0] = time.monotonic() - begin < seconds
            soak.plain.Bcast(goes_on)
            if not before and steps >= WARM and time.monotonic() - begin > seconds / 5:
                before, natives = resident(), soak.natives
    grown = max(soak.plain.allgather(resident() - before if before else 0))
    if world.rank == 0:
        done = ", ".join(f"{number:,} {what}" for what, number in sorted(soak.done.items()))
        print(f"seed {seed}: {steps:,} steps, no difference: {done}; {grown} KiB more", flush=True)
        print(grown, soak.natives - natives, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.soak")
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int, nargs="?", default=int(time.time()))
    parser.add_argument("--ranks", type=int, default=5)
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.within:
        within(given.seconds, given.seed)
        return
    seconds, seed, ranks = given.seconds, given.seed, given.ranks
    failed, left = [], 0.0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_rules(folder)
        for number, mode in enumerate(("native", *MODES)):
            share, begin = seconds / (1 + len(MODES)), time.monotonic()
            launch = ["-m", *words(mode, folder), Path(__file__), "--within", share, seed + number]
            done = mpi_job(ranks, *launch, timeout=share + 120, env={**ENVIRONMENT, "XDG_CACHE_HOME": scratch})
            heading = f"{mode}, {ranks} ranks, {time.monotonic() - begin:.0f} s: "
            if done.returncode:
                failed.append(mode)
                print(heading + "failed", flush=True)
                print(done.stdout[-2000:], done.stderr[-6000:], sep="\n", file=sys.stderr, flush=True)
                continue
            said, numbers = done.stdout.strip().rsplit("\n", 1)
            grown, natives = map(int, numbers.split())
            left = grown / max(natives, 1) if mode == "native" else left
            print(f"{heading}{said}, {natives * left:.0f} of the library's {natives:,} persistent requests", flush=True)
            if grown - natives * left > SLACK:
                failed.append(f"{mode}: {grown} KiB more")
    sys.exit(f"expecting no difference and no leak, got {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
