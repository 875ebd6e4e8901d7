"""The arena (simulated network) of topompi's own simulator: messages are flows or packets.

Other MPI libraries are simulated by the algorithms that their documented decision rules choose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topompi import __version__
from topompi.errors import BenchmarkError
from topompi.mpi.prediction.libraries import KNOWN, CallShape, Library
from topompi.netsim import BACKGROUND, RECEIVE, SEND, Hosts, Program, Result, packets, run
from topompi.network import Tables
from topompi.schedules import Network, Schedule
from topompi.schedules.schedule import ROOTED
from topompi.topology import Routes
from topompi.views.program import program_of, wiring_of
from topompi.views.tables import tables_of

from .background import Background
from .ground import MOST_MESSAGES, Failure, Ground, Starts

__all__ = ["LIBRARIES", "METHODS", "SKEW", "FlowArena", "one_switch", "repeated_alltoall"]

SKEW = 2e-6  # seconds within which ranks start at random times, if there are seeds
FDR = packets.PRESETS["fdr"]
BRACKET = {
    "16 KiB a port": replace(FDR.settings, buffer=16384),
    "one queue an input": replace(FDR.settings, queueing="input"),
}
LIBRARIES: dict[str, Library] = {library.name.partition(" 5")[0].lower().replace(" ", ""): library for library in KNOWN}
METHODS = {
    **{
        name: name.capitalize()
        for name in ("bcast", "gather", "scatter", "allgather", "reduce", "allreduce", "alltoall", "scan", "exscan")
    },
    "reduce_scatter": "Reduce_scatter_block",
}


class FlowArena(Ground):
    """A network on which ``topompi.netsim`` times schedules.

    Messages inside a host are copied at the system's memory rate. If messages are flows, all messages that one rank
    receives share this rate; if they are packets, they are copied one after the other. Packets pass the switches and
    adapters of the preset ``fdr``. The latencies of ``platform.complete`` are those of whole messages and contain the
    hosts' parts. The processors of the preset take these parts themselves, so the wires of packets have the preset's
    latency.

    :param network: network of the job; unknown rates are filled in, see ``platform.complete``, and for flows unknown
        latencies.
    :param system: system in table 1.1 of Subramoni 2013 whose rates, and for flows latencies, are filled in:
        ``stampede`` or ``ranger``.
    :param background: second job on the same hosts, which runs until the first has ended; None if there is none.
    :param eager: maximum bytes of a message whose send does not wait for its receiver; if it is None, 0 for flows, and
        the preset's number for packets.
    :param seeds: number of runs in which ranks start at different random times within ``SKEW``, and of which the median
        is taken; 0 for a single run in which all ranks start together.
    :param most_messages: maximum number of messages of a schedule; a longer one is not simulated.
    :param routes: routes from which the job's network was made, if messages are packets; None if they are flows.
    :param bracket: True to simulate packets also with each of the two kinds of switches in ``BRACKET``, which takes
        three times as long.
    """

    def __init__(
        self,
        network: Network,
        *,
        system: str = "stampede",
        background: Background | None = None,
        eager: int | None = None,
        seeds: int = 0,
        most_messages: int = MOST_MESSAGES,
        routes: Routes | None = None,
        bracket: bool = False,
    ) -> None:
        super().__init__(network, system, most_messages)
        unless_told = 0 if routes is None else int(FDR.hosts.eager)
        self.seeds, self.eager = seeds, unless_told if eager is None else eager
        self._bracket = BRACKET if bracket and routes is not None else {}
        self._beside = [] if background is None else [repeated_alltoall(self.network.num_hosts, background.nbytes)]
        rate, latency = self._loopback
        self._hosts = Hosts(copy_rate=rate, copy_latency=latency, eager=self.eager, skew=SKEW if seeds else 0.0)
        self._wiring = wiring_of(self.network)
        self._tables = None
        if routes is not None:
            tables = tables_of(routes, rate=1.0, latency=0.0)
            wires = np.where(np.isnan(network.latency), FDR.latency, network.latency)
            self._tables = replace(tables, rate=self.network.capacity, latency=wires)
            self._hosts = _fdr_hosts(self._hosts)

    @property
    def _latencies_of(self) -> str:
        return super()._latencies_of if self._tables is None else "FDR wires"

    @property
    def simulator(self) -> str:
        """Name and version of the simulator."""
        return f"topompi {__version__}, {self._model}"

    @property
    def _model(self) -> str:
        return "flows" if self._tables is None else "packets"

    def describe(self) -> str:
        """Describe in a line the origin of rates and latencies, and the starts of the ranks."""
        sends = f", sends of at most {self.eager} bytes do not wait" if self.eager else ""
        starts = f"median of {self.seeds} starts within {SKEW * 1e6:g} us" if self.seeds else "all start together"
        model = self._model + ("" if self._tables is None else " as on FDR switches")
        return f"{super().describe()}, {model}, {starts}{sends}"

    def time(self, schedule: Schedule, block_bytes: int = 1, slices: int = 1) -> float | Failure:
        """Return the simulated seconds until the last rank has completed a schedule, or a failure.

        The seconds are a ``Starts``: the median of runs in which ranks start at different times, with each run's
        seconds.

        :param schedule: the messages, in blocks.
        :param block_bytes: bytes of one block.
        :param slices: number of parts into which every transfer is cut.

        Cost: a run of ``netsim.run`` or ``netsim.packets.run`` for each seed; with packets and ``bracket``, three
        times as many.
        """
        if (left_out := self.left_out(schedule, slices)) is not None:
            return left_out
        programs = [program_of(schedule, self.network, block_bytes).cut(slices), *self._beside]
        bracket = {name: float(Starts(self._starts(programs, switches))) for name, switches in self._bracket.items()}
        return Starts(self._starts(programs, FDR.settings), bracket)

    def _starts(self, programs: list[Program], switches: packets.Settings) -> list[float]:
        """Return the simulated seconds of the first program, one number per run with its own starts of the ranks."""
        seeds = range(max(1, self.seeds))
        return [float(self._run(programs, switches, seed).job_seconds[0]) for seed in seeds]

    def _run(self, programs: list[Program], switches: packets.Settings, seed: int) -> Result:
        if self._tables is None:
            return run(self._wiring, programs, hosts=self._hosts, seed=seed)
        return packets.run(self._tables, programs, hosts=self._hosts, settings=switches, seed=seed)

    def peer(self, library: str, collective: str, nbytes: int, root: int = 0) -> float | Failure:
        """Return the simulated seconds of the algorithm that a library would run for a collective, or a failure.

        :param library: a key of ``LIBRARIES``.
        :param collective: name of the collective.
        :param nbytes: bytes of one message, see ``peers.Peer``.
        :param root: root of a rooted collective.
        """
        if library not in LIBRARIES:
            raise BenchmarkError(f"simulate: expecting a library of {', '.join(LIBRARIES)}, got {library!r}")
        if collective not in METHODS:
            raise BenchmarkError(f"simulate: expecting a collective of {', '.join(METHODS)}, got {collective!r}")
        decision = LIBRARIES[library].decide(CallShape(METHODS[collective], nbytes, self.network.rank_host))
        if decision is None:
            return Failure("left out: no schedule is known of what it runs")
        try:
            schedule = decision.schedule(one_switch(self.network), root if collective in ROOTED else 0)
        except ValueError as error:
            return Failure(f"left out: {error}")
        found = self.time(schedule, -(-nbytes // schedule.blocks))
        return self.possible(found, collective, nbytes, root)


def _fdr_hosts(hosts: Hosts) -> Hosts:
    """Return hosts with the preset's overheads, which are no longer part of the latency of copies inside a host."""
    sending, receiving = FDR.hosts.send_overhead, FDR.hosts.receive_overhead
    copying = max(0.0, hosts.copy_latency - sending - receiving)
    return replace(hosts, send_overhead=sending, receive_overhead=receiving, copy_latency=copying)


def one_switch(network: Network) -> Network:
    """Return the network as an MPI library without topology sees it: all hosts on one switch."""
    hosts = network.num_hosts
    return replace(
        network,
        hops=(1 - np.eye(hosts)).astype(np.int16),
        paths=Tables.one_switch(hosts),
        capacity=np.ones(2 * hosts),
        clusters=np.zeros((1, hosts), dtype=np.int64),
        latency=np.zeros(2 * hosts),
    )


def repeated_alltoall(hosts: int, nbytes: int) -> Program:
    """Return a job with one rank on each host that repeats an alltoall of blocks of ``nbytes`` bytes, step by step."""
    rank, step = (axis.ravel() for axis in np.indices((hosts, hosts - 1)))
    return Program(
        np.arange(hosts),
        rank=np.tile(rank, 2),
        step=np.tile(step, 2),
        kind=np.repeat([SEND, RECEIVE], len(rank)),
        peer=np.concatenate(((rank + step + 1) % hosts, (rank - step - 1) % hosts)),
        amount=np.full(2 * len(rank), float(nbytes)),
        repeat=BACKGROUND,
        name="background",
    )
