"""Recording of an mpi4py program from inside, with any MPI library: its calls are counted as it makes them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...inputs.settings import word_of
from ..communicator import Intracomm
from ..communicator.handle import Handle, keep
from ..communicator.state import state_of
from ..execution.native import NativeIntracomm
from . import methods
from .command import kept_command
from .counting import CountedRanks, Recorded, TrafficCounters
from .errors import ProfileError
from .file import head_line, part_of, parts_of, rank_line, write_lines
from .overhead import call_seconds
from .recording import RECORDED, Profile, RankRows

__all__ = ["METHOD", "MOVES", "Recording", "record_from_environment", "running"]

METHOD = "topompi in mpi4py, the program's own calls"
# Letters of the kinds (see ``recording.KINDS``) that count as moved data. I has the messages of topompi's plans; C has
# the bytes that collective calls ask the MPI library to move, because its own messages cannot be seen from outside.
MOVES = "EISRC"
SIGNALS = {signal.SIGUSR1: "start", signal.SIGUSR2: "stop"}
_active: Recording | None = None


class Recording:
    """A recording of the data that a communicator's ranks send; see ``topompi.mpi.profile.record`` for its arguments.

    :ivar comm: the communicator whose calls are counted, with those of communicators made from it.
    :ivar counters: the counters of this rank.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        file: str | os.PathLike[str],
        granularity: str = "process",
        every: float = 10.0,
        *,
        joint: bool = True,
    ) -> None:
        if granularity not in RECORDED:
            raise ProfileError(f"expecting a granularity of {' or '.join(RECORDED)}, got {granularity!r}")
        if granularity == "host" and not joint:
            raise ProfileError("expecting python -m topompi, which knows all hosts, for a profile by host; got none")
        native = NativeIntracomm(comm)
        self.path, self.granularity, self.every = Path(file).absolute(), granularity, every
        self.rank, self.size = native.Get_rank(), native.Get_size()
        self._check(native if joint else MPI.COMM_SELF)
        ours: Any = comm if isinstance(comm, Handle) or not joint else Intracomm(comm)
        self.comm = ours
        hosts = self._hosts() if joint else None
        self.host = MPI.Get_processor_name() if hosts is None else hosts[0][hosts[1][self.rank]]
        self._virtual = joint and state_of(ours).interface.virtual
        self._group = native.Get_group()
        self._unit, peers = _units(self.size, None if granularity == "process" or hosts is None else hosts[1])
        self.counters = TrafficCounters(len(peers), peers)
        self._messages = native.Dup() if joint else None
        self._counting = 0.0
        self._began, self._seconds, self._done = 0.0, 0.0, threading.Event()
        self._runs = False
        self._before: dict[int, Any] = {}

    def _check(self, comm: MPI.Intracomm) -> None:
        """Raise an error on all ranks if one of them cannot record; else remove old files that ranks left."""
        why = ""
        if _active is not None:
            why = f"expecting one recording at a time, got {self.path} while {_active.path} is being recorded"
        elif not self.path.parent.is_dir():
            why = f"expecting a file in a folder that exists, got {self.path}"
        elif comm.Get_rank() == 0:
            with suppress(OSError):
                for part in parts_of(self.path):
                    part.unlink()
        if whys := [one for one in comm.allgather(why) if one]:
            raise ProfileError(whys[0])

    def _hosts(self) -> tuple[list[str], NDArray[np.int64]]:
        interface = state_of(self.comm).interface
        return list(interface.hosts), interface.rank_host.astype(np.int64)

    def __enter__(self) -> object:
        self._open()
        return self.comm

    def _open(self) -> None:
        """Begin to record: install signal handlers, start the thread that updates this rank's file, start counting."""
        global _active
        _active = self
        if threading.current_thread() is threading.main_thread():
            for number, name in SIGNALS.items():
                self._before[number] = signal.signal(number, lambda *_, name=name: getattr(self, name)())
        threading.Thread(target=self._keep, daemon=True, name="topompi profile").start()
        self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(joint=error is None)

    def start(self) -> None:
        """Start counting on this rank; the signal SIGUSR1 has the same effect."""
        if not self._runs:
            self._runs, self._began = True, time.monotonic()
            methods.install(self.counters, self._group_of)

    def stop(self) -> None:
        """Stop counting on this rank until the next ``start``; the signal SIGUSR2 has the same effect."""
        if self._runs:
            methods.remove()
            self._runs, self._seconds = False, self._seconds + time.monotonic() - self._began
            self.flush()

    @property
    def is_running(self) -> bool:
        """Whether calls are counted now."""
        return self._runs

    def flush(self) -> None:
        """Write the counts that this rank has so far to this rank's own file, without communication."""
        with suppress(OSError):  # a full disk must not end the program; ``close`` reports the error
            write_lines((head_line(self._head()), rank_line(self._rows())), part_of(self.path, self.rank))

    def _keep(self) -> None:
        while not self._done.wait(self.every):
            self.flush()

    def _head(self) -> Profile:
        seconds = self._seconds + (time.monotonic() - self._began if self._runs else 0.0)
        command = kept_command([Path(sys.executable).name, *sys.argv])
        how: dict[str, Any] = {"moves": MOVES, "granularity": self.granularity, "virtual": self._virtual}
        how["counting"] = self._counting
        return Profile(self.size, METHOD, command, round(seconds, 6), **how)

    def _rows(self) -> RankRows:
        return self.counters.rows(self.rank, self.host)

    def close(self, joint: bool = True) -> None:
        """Stop the recording and write the profile; collective if ``joint``.

        :param joint: True if all ranks make this call, so that rank 0 collects and writes one profile; False to keep
            each rank's own file instead, without communication.
        :raises ProfileError: if rank 0 cannot write the profile; all ranks raise the error.

        Cost: each rank's line of the file is sent to rank 0, which holds one line at a time.
        """
        global _active
        if self._done.is_set():
            return
        self._done.set()
        self.stop()
        self._counting = round(self.counters.seconds_a_call(max(0.0, *call_seconds(500, 3).values())), 9)
        self.flush()
        _active = None
        for number, before in self._before.items():
            signal.signal(number, before)
        if joint and self._messages is not None and not MPI.Is_finalized():
            self._gather(self._messages)
            self._messages.Free()
            self._group.Free()

    def _gather(self, comm: MPI.Intracomm) -> None:
        why = ""
        if self.rank == 0:
            lines = self._lines(comm)
            try:
                write_lines(lines, self.path)
            except OSError as error:
                why = f"{self.path}: expecting a file that can be written: {error.strerror}"
                for _ in lines:  # receive the remaining lines, because otherwise the other ranks wait in their sends
                    pass
        else:
            comm.send(rank_line(self._rows()), 0)
        if why := comm.bcast(why):
            raise ProfileError(why)
        part_of(self.path, self.rank).unlink(missing_ok=True)

    def _lines(self, comm: MPI.Intracomm) -> Iterator[bytes]:
        yield head_line(self._head())
        yield rank_line(self._rows())
        for rank in range(1, self.size):
            yield comm.recv(source=rank)

    def units_of(self, group: MPI.Group) -> NDArray[np.int64]:
        """Number of the counters' peer for each rank of an MPI group, shape (ranks,); -1 if it is not recorded."""
        ranks = np.array(group.Translate_ranks(None, self._group), dtype=np.int64)
        return np.where(ranks >= 0, self._unit[ranks], -1)

    def _group_of(self, comm: MPI.Comm) -> CountedRanks:
        """The `Group` of a communicator, which is also stored with the communicator."""
        group = MPI.Comm.Get_group(comm)
        found: CountedRanks = self.counters.group(MPI.Comm.Get_rank(comm), self.units_of(group))
        group.Free()
        keep(comm, "_topompi_recorded", Recorded(found))
        return found


def _units(size: int, rank_host: NDArray[np.int64] | None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The number of each rank's peer (the rank, or its host), shape (ranks,), and each peer's lowest rank, (peers,)."""
    if rank_host is None:
        return np.arange(size, dtype=np.int32), np.arange(size, dtype=np.int64)
    _, first, unit = np.unique(rank_host, return_index=True, return_inverse=True)
    return unit.astype(np.int32), first.astype(np.int64)


def running() -> Recording | None:
    """The recording that counts calls now; None if no recording is active, or the active one is stopped."""
    return _active if _active is not None and _active.is_running else None


def record_from_environment(comm: MPI.Intracomm | None = None) -> Recording | None:
    """Start a recording to the file that ``TOPOMPI_PROFILE`` names, and return it.

    The result is None if the variable is empty, or a recording is active already.

    :param comm: topompi's communicator of all ranks, if all make this call and end the recording together; None if each
        rank keeps a file of its own.
    """
    file = os.environ.get("TOPOMPI_PROFILE")
    if not file or _active is not None:
        return None
    granularity = word_of("TOPOMPI_PROFILE_GRANULARITY", os.environ) or "process"
    recording = Recording(comm or MPI.COMM_WORLD, file, granularity, joint=comm is not None)
    recording._open()
    if comm is None:
        import atexit

        atexit.register(recording.close, joint=False)
    return recording
