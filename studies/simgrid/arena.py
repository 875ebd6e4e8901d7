"""SimGrid's arena: a simulated network on which schedules and other MPI libraries (peers) are timed."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from osu_like_bench.simulate import Background, Failure
from osu_like_bench.simulate.ground import MOST_MESSAGES, Ground
from topompi.errors import BenchmarkError
from topompi.inputs.writing import write_text
from topompi.schedules import Network, Schedule
from topompi.schedules.schedule import ROOTED

from . import smpi
from .peers import PEERS, Peer
from .platform import SLOWER, write_platform
from .smpi import Replay
from .traces import write_traces

__all__ = ["Arena"]

PAUSE = 1e-6  # seconds between a peer's warm-up and its timed collective


class Arena(Ground):
    """A simulated network on which SimGrid times schedules and other MPI libraries (peers).

    Times depend on the platform's rates and latencies alone: a rank takes no time to start a message, the flows on a
    link share it equally, and a switch never blocks. SimGrid adds 16 bytes to each message. ``time`` and ``peer`` may
    be called from several threads.

    :param network: network of the job; unknown rates and latencies are filled in, see ``ground.complete``.
    :param system: system in table 1.1 of Subramoni 2013 whose latencies and rates are filled in: ``stampede`` or
        ``ranger``.
    :param background: second job on the same hosts, which slows the links; None if there is none.
    :param model: ``flow``, or ``smpi`` for SimGrid's own corrections of rates and latencies, see ``smpi.MODELS``.
    :param eager: bytes; the send of a smaller message does not wait for its receiver, in schedules and in peers.
    :param timeout: maximum seconds of real time of one simulation.
    :param most_messages: maximum number of messages of a schedule; a longer one is not simulated.
    """

    def __init__(
        self,
        network: Network,
        *,
        system: str = "stampede",
        background: Background | None = None,
        model: str = "flow",
        eager: int = 0,
        timeout: float = 300.0,
        most_messages: int = MOST_MESSAGES,
    ) -> None:
        super().__init__(network, system, most_messages)
        self.shared = self.network if background is None else background.left_over(self.network)
        if model not in smpi.MODELS:
            raise BenchmarkError(f"simulate: expecting a model of {', '.join(smpi.MODELS)}, got {model!r}")
        self.model, self.eager, self.timeout = model, eager, timeout
        self._simulator = smpi.Simulator()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()

    @property
    def simulator(self) -> str:
        """Name and version of the simulator."""
        return smpi.version()

    def describe(self) -> str:
        """Describe in a line the origin of rates and latencies, and SimGrid's model."""
        sends = f", sends below {self.eager} bytes do not wait" if self.eager else ""
        return f"{super().describe()}, model {self.model}{sends}"

    def close(self) -> None:
        """End running simulations, and remove the platform's file."""
        self._simulator.close()
        with self._lock:
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def time(self, schedule: Schedule, block_bytes: int = 1, slices: int = 1) -> float | Failure:
        """Return the simulated seconds until the last rank has completed a schedule, or a failure.

        :param schedule: the messages, in blocks.
        :param block_bytes: bytes of one block.
        :param slices: number of parts into which every transfer is cut; with more than one, the result is a failure.

        Cost: about 15 us of real time per message, for messages that are in flight together.
        """
        if (left_out := self.left_out(schedule)) is not None:
            return left_out
        if slices > 1:
            return Failure("left out: traces have no transfers whose parts travel by themselves")
        options = smpi.configuration(self.model, None, self.eager)
        with self._replaying(lambda where: write_traces(schedule, where, block_bytes)) as replay:
            return self._simulator.run(replay, options)

    def peer(self, library: str, collective: str, nbytes: int, root: int = 0) -> float | Failure:
        """Return the simulated seconds of a library's own choice of algorithm for a collective, or a failure.

        The time is that of a second call, without the set-up of the communicator; all ranks begin it together. A time
        below the lower bound is a failure, because it shows that the algorithm does not move all data.

        :param library: name of the library, one of ``PEERS``, or another of SimGrid's selectors of algorithms.
        :param collective: name of the collective.
        :param nbytes: bytes of one message, see ``peers.Peer``.
        :param root: root of a rooted collective.
        """
        peer = Peer(collective, self.network.num_ranks, nbytes, root if collective in ROOTED else 0)
        return self.possible(self._peer(peer, library), collective, nbytes, root)

    def _peer(self, peer: Peer, selector: str) -> float | Failure:
        """Return the simulated seconds of the timed collective; all ranks begin it together after the warm-up."""
        options = [peer.option, *smpi.configuration(self.model, selector, self.eager)]
        with self._replaying(peer.write_warm_up) as replay:
            ends = self._simulator.ends(replay, options)
        if isinstance(ends, Failure):
            return ends
        begin = max(ends) + PAUSE
        with self._replaying(lambda where: peer.write(where, [(begin - end) * SLOWER for end in ends])) as replay:
            found = self._simulator.run(replay, options)
        return found if isinstance(found, Failure) else found - begin

    def best_peer(self, collective: str, nbytes: int, root: int = 0) -> tuple[str, float] | None:
        """Return the name and seconds of the fastest of ``PEERS``; None if all fail.

        :param collective: name of the collective.
        :param nbytes: bytes of one message, see ``peers.Peer``.
        :param root: root of a rooted collective.
        """
        timed = [(self.peer(name, collective, nbytes, root), name) for name in PEERS]
        found = [(seconds, name) for seconds, name in timed if not isinstance(seconds, Failure)]
        return None if not found else min(found)[::-1]

    @contextmanager
    def _replaying(self, write: Callable[[Path], Path]) -> Iterator[Replay]:
        """Provide a replay of traces, which are temporary.

        :param write: function that writes the traces into a folder, and returns the file that lists them.
        """
        files = self._files()
        with tempfile.TemporaryDirectory(prefix="topompi-") as scratch:
            yield Replay(write(Path(scratch)), *files, self.network.num_ranks, self.timeout)

    def _files(self) -> tuple[Path, Path]:
        """Return the paths of the platform file and the host file, which are written at the first call."""
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="topompi-")
                where = Path(self._folder.name)
                write_platform(self.shared, where / "platform.xml", self._loopback, fair=self.model == "flow")
                hosts = "".join(f"h{host}\n" for host in self.network.rank_host.tolist())
                write_text(where / "hosts", hosts)
            where = Path(self._folder.name)
            return where / "platform.xml", where / "hosts"
