"""Scheduling of requests for views and trees on worker processes: one per peer at a time, least-served peer first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from .bounds import Bounds
from .counters import ServiceCounters
from .generation import Generation
from .peers import PeerAccount
from .requests import RequestError
from .worker import Worker, WorkerError

__all__ = ["Workers"]

PATIENCE = 1.0  # seconds; limits the wait for the end of killed processes


@dataclass(eq=False)
class _Turn:
    """A request for a view or tree that waits for a worker.

    :param peer: the peer that asked for it.
    :param granted: future that ends when a worker is free for the request, with an error if the request is refused.
    """

    peer: PeerAccount
    granted: asyncio.Future[None]


class Workers:
    """The worker processes that compute views and trees, created on demand, and the queue of requests for them.

    :param bounds: the service's limits.
    :param counters: the service's counters.
    :param current: function that returns the current generation (loaded version of the routes).
    """

    def __init__(self, bounds: Bounds, counters: ServiceCounters, current: Callable[[], Generation]) -> None:
        self.quiet = asyncio.Lock()  # held while a thread reads a source, because no process may be forked then
        self._bounds, self._counters, self._current = bounds, counters, current
        self._waiting: list[_Turn] = []
        self._served: set[PeerAccount] = set()  # peers whose view or tree is in work
        self._idle: list[Worker] = []
        self._ended: list[Worker] = []

    @property
    def busy(self) -> int:
        """Number of requests for views and trees that wait or are in work."""
        return len(self._waiting) + len(self._served)

    async def answer(self, peer: PeerAccount, line: bytes) -> tuple[bool, bytearray]:
        """Let a worker answer a request; returns whether it failed, and the answer. A cancelled caller ends the work.

        :param peer: the peer whose account is charged.
        :param line: the request as a line of JSON.
        :raises RequestError: if the peer's budget is used up, too many requests wait, or the work took too long.
        """
        self._require_left(peer)
        await self._turn(peer)
        try:
            self._require_left(peer)  # the peer may have used up its budget while this request waited
            worker = await self._worker()
            began = monotonic()
            try:
                failed, answer = await worker.answer(line)
            except BaseException:
                self._counters.ended += 1
                self._ended.append(worker)
                raise
            finally:
                peer.seconds.add(monotonic() - began)
            peer.bytes.add(len(answer))
            self._idle.append(worker)
            return failed, answer
        finally:
            self._served.discard(peer)
            self._grant()

    def look(self) -> None:
        """Release the processes of workers that have ended, and end idle workers that still have replaced routes."""
        for worker in [one for one in self._idle if one.generation is not self._current()]:
            self._idle.remove(worker)
            self._end(worker)
        self._ended = [worker for worker in self._ended if not worker.is_gone()]

    async def close(self) -> None:
        """End all idle workers; busy workers end because their callers have been cancelled."""
        until = monotonic() + PATIENCE
        while (self._idle or self._ended or self._served) and monotonic() < until:
            while self._idle:
                self._end(self._idle.pop())
            self.look()
            await asyncio.sleep(0.01)

    def _end(self, worker: Worker) -> None:
        worker.end()
        self._ended.append(worker)

    async def _worker(self) -> Worker:
        """An idle worker of the current generation, else a new one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.generation is self._current() and not worker.is_gone():
                return worker
            self._end(worker)
        async with self.quiet:
            try:
                return Worker(self._current(), self._bounds)
            except OSError as error:
                raise WorkerError(f"expecting a process to work in, got: {error.strerror}") from error

    def _require_left(self, peer: PeerAccount) -> None:
        wait = max(peer.seconds.wait, peer.bytes.wait)
        if wait:
            self._counters.refused += 1
            wanted = f"{self._bounds.peer_seconds:g} seconds of work and {self._bounds.peer_bytes:,} bytes of answers"
            raise RequestError(f"expecting at most {wanted} a minute for {peer.name}: ask again in {wait:.0f} seconds")

    async def _turn(self, peer: PeerAccount) -> None:
        """Wait until a worker is free and the peer is the next to get one."""
        self._make_way(peer)
        turn = _Turn(peer, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._grant()
        try:
            await turn.granted
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif not turn.granted.cancelled() and turn.granted.exception() is None:
                self._served.discard(peer)  # cancelled after the grant, before this coroutine resumed
                self._grant()
            raise

    def _make_way(self, peer: PeerAccount) -> None:
        """If too many requests wait, refuse the last one of the peer that has most; it may be the new request."""
        if self.busy < self._bounds.waiting:
            return
        self._counters.refused += 1
        full = RequestError(f"expecting at most {self._bounds.waiting} views at once, got one more: ask again")
        counts = Counter([*self._served, *(turn.peer for turn in self._waiting)])
        last = max(reversed(self._waiting), key=lambda turn: counts[turn.peer], default=None)
        if last is None or counts[last.peer] <= counts[peer] + 1:
            raise full
        self._waiting.remove(last)
        if not last.granted.done():
            last.granted.set_exception(full)

    def _grant(self) -> None:
        """Give free workers to waiting peers that use none, first to the peer that has spent the least work time."""
        while len(self._served) < self._bounds.workers:
            able = [turn for turn in self._waiting if turn.peer not in self._served and not turn.granted.done()]
            if not able:
                return
            turn = min(able, key=lambda turn: turn.peer.seconds.amount)
            self._waiting.remove(turn)
            self._served.add(turn.peer)
            turn.granted.set_result(None)
