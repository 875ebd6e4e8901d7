"""Calls of every form on every rank, recorded; rank 0 prints what is not as MPI defines it."""

import sys

import numpy as np
from mpi4py import MPI

import topompi
from topompi.mpi.profile import read_profile
from topompi.mpi.profile.windows import Win

FILE = sys.argv[1]
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size
out, back = np.zeros(100), np.zeros(100)


def recorded(calls, granularity="process"):
    """The graph of what some calls sent, as a dictionary of pairs, on rank 0."""
    with topompi.profile(world, FILE, granularity=granularity) as comm:
        calls(comm)
    world.Barrier()
    graph = read_profile(FILE).graph()
    rows = (graph.sources, graph.targets, graph.messages, graph.volume)
    return {(a, b): (m, v) for a, b, m, v in zip(*(row.tolist() for row in rows), strict=True)}


def messages(comm):
    comm.Sendrecv(out, after, recvbuf=back, source=before)
    comm.Isend([out, 50, MPI.DOUBLE], dest=after, tag=3)
    comm.Recv(back, before, 3)
    comm.Send(out, MPI.PROC_NULL)
    send, receive = comm.Send_init(out, after), comm.Recv_init(back, before)
    for _ in range(2):
        receive.Start()
        send.Start()
        send.Wait(), receive.Wait()
    receive.Start()
    type(send).Startall([send])
    send.Wait(), receive.Wait()
    send.Free(), receive.Free()
    comm.send([1, 2], after)
    assert comm.recv(source=before) == [1, 2]
    assert comm.sendrecv("x", after, source=before) == "x"


RING = 800 + 400 + 3 * 800 + len(MPI.pickle.dumps([1, 2])) + len(MPI.pickle.dumps("x"))
ring = {(one, (one + 1) % size): (7, RING) for one in range(size)}
everyone = [(one, other) for one in range(size) for other in range(size) if one != other]


def windows(comm):
    win = Win.Allocate(800, 8, comm=comm)
    win.Fence()
    win.Put(out, after)
    win.Fence()
    win.Get(back, after)
    win.Fence()
    win.Free()


def parts(comm):
    half = comm.Split(rank % 2)
    half.Bcast(out)  # from ranks 0 and 1
    half.Free()


counts = np.arange(size) + rank
EACH = {
    "alltoall": (lambda c: c.Alltoall(np.zeros(9 * size), np.zeros(9 * size)), dict.fromkeys(everyone, (1, 72))),
    "bcast": (lambda c: c.Bcast(out, root=1), {(1, one): (1, 800) for one in range(size) if one != 1}),
    "ibcast": (lambda c: c.Ibcast(out, 1).Wait(), {(1, one): (1, 800) for one in range(size) if one != 1}),
    "gather": (lambda c: c.Gather(out, np.zeros(100 * size), 0), {(one, 0): (1, 800) for one in range(1, size)}),
    "scatter": (lambda c: c.Scatter(np.zeros(100 * size), out, 0), {(0, one): (1, 800) for one in range(1, size)}),
    "allgather": (lambda c: c.Allgather(out, np.zeros(100 * size)), dict.fromkeys(everyone, (1, 800))),
    "allgather in place": (
        lambda c: c.Allgather(MPI.IN_PLACE, np.zeros(100 * size)),
        dict.fromkeys(everyone, (1, 800)),
    ),
    "allreduce": (lambda c: c.Allreduce(out, back), dict.fromkeys(everyone, (1, 1600 // size))),
    "allreduce_init": (
        lambda c: [(r := c.Allreduce_init(out, back)), r.Start(), r.Wait(), r.Free()],
        dict.fromkeys(everyone, (1, 1600 // size)),
    ),
    "reduce": (lambda c: c.Reduce(out, back, root=0), {(one, 0): (1, 800) for one in range(1, size)}),
    "scan": (lambda c: c.Scan(out, back), {(one, one + 1): (1, 800) for one in range(size - 1)}),
    "alltoallv": (
        lambda c: c.Alltoallv([np.zeros(size * 9), counts], [np.zeros(size * 9), counts]),
        {(one, other): (1, 8 * (one + other)) for one, other in everyone},
    ),
    "object bcast": (
        lambda c: c.bcast("abc", root=0),
        {(0, one): (1, len(MPI.pickle.dumps("abc"))) for one in range(1, size)},
    ),
    "object gather": (
        lambda c: c.gather("abc", root=0),
        {(one, 0): (1, len(MPI.pickle.dumps("abc"))) for one in range(1, size)},
    ),
    "barrier": (lambda c: c.Barrier(), {}),
    "cart": (
        lambda c: c.Create_cart([size], [False]).Neighbor_allgather(out, np.zeros((2, 100))),
        {(a, b): (1, 800) for a, b in everyone if abs(a - b) == 1},
    ),
    "part": (parts, {(one % 2, one): (1, 800) for one in range(2, size)}),
    "windows": (windows, None),
    "messages": (messages, ring),
}
# Calls that topompi leaves to the library have their own names.
NAMES = {
    "bcast": "Bcast",
    "ibcast": "Ibcast",
    "allreduce_init": "Allreduce",
    "object bcast": "Bcast",
    "object gather": "gather",
}
for name, (calls, wanted) in EACH.items():
    found = recorded(calls)
    if name == "windows":
        wanted = {(one, other): (1, 800) for a in range(size) for one, other in ((a, (a + 1) % size),)}
        wanted |= {(other, one): (1, 800) for one, other in list(wanted)}
    if rank == 0:
        print("same" if found == wanted else f"{name}: {found} is not {wanted}")
    if rank == 0 and name in NAMES:
        called = [one.name for one in read_profile(FILE).of_rank[0].calls]
        print("same" if called == [NAMES[name]] else f"{name}: {called}")
    if rank == 0 and name == "cart":
        sizes = read_profile(FILE).of_rank[0].calls
        print("same" if sizes == (("Neighbor_allgather", size, 800, 1),) else f"sizes: {sizes}")
        exchanges = read_profile(FILE).of_rank[0].exchanges
        print("same" if exchanges == (("Neighbor_allgather", 0, size, 0, 1, 0, (1,), (800,)),) else f"{exchanges}")

# On virtual hosts of two ranks each, what goes to a host counts for its lowest rank.
found = recorded(EACH["alltoall"][0], "host")
hosts = {(one, 2 * host): (1 if one // 2 == host else 2) for one in range(size) for host in range(size // 2)}
if rank == 0:
    print("same" if found == {pair: (number, 72 * number) for pair, number in hosts.items()} else f"hosts: {found}")


def in_part(comm):
    recording = topompi.mpi.profile.live.running()
    comm.Barrier()
    recording.stop()
    comm.Bcast(out)
    assert "Bcast" not in read_profile(FILE).of_rank[0].calls
    recording.start()
    comm.Bcast(back[:1])


found = recorded(in_part)
if rank == 0:
    print("same" if found == {(0, one): (1, 8) for one in range(1, size)} else f"in part: {found}")
assert "Send" not in vars(topompi.Intracomm)
try:
    topompi.profile(world, "/nowhere/at/all")
except topompi.mpi.profile.ProfileError as error:
    if rank == 0:
        print("same" if "expecting a file in a folder that exists" in str(error) else error)
