"""The state that all connections of a topology service share: routes, counters, background tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, replace

from ...machine.daemon.commands import in_thread, run_command
from ...machine.daemon.counters import prometheus
from ...machine.daemon.notify import notify
from ...machine.daemon.watch import Watch
from .bounds import Bounds
from .counters import PREFIX, ServiceCounters
from .peers import Client, PeerAccount, Peers
from .requests import RequestError, answer_line, encode, failure
from .store import RouteStore
from .workers import Workers

__all__ = ["Service"]

LOOK_SECONDS = 1.0  # seconds between two checks of the clients
WATCH_SECONDS = 0.4  # seconds between two checks of the files, so that a change is read within 2 s
_LOGGER = logging.getLogger(__name__)


class Service:
    """A topology service: the state that all its connections share, and the answers to their requests.

    :param store: the store of the current generation (loaded version of the routes).
    :param source: source of the routes, in words, for the page ``/health``.
    :param bounds: limits on clients and requests.
    """

    def __init__(self, store: RouteStore, source: str, bounds: Bounds | None = None) -> None:
        self.store, self.source, self.bounds = store, source, bounds or Bounds()
        self.counters = ServiceCounters()
        self.connections: set[Client] = set()
        self.peers = Peers(self.bounds)
        self.workers = Workers(self.bounds, self.counters, lambda: store.current)
        self.dropped: Counter[tuple[str, str]] = Counter()  # (peer, reason), since the last log entry
        self.started = time.time()
        self.command_problem = ""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> int:
        """Bytes of incomplete requests and unread answers."""
        return self.peers.held

    def limit_clients(self, count: int) -> None:
        """Lower the limit of clients.

        :param count: number of clients that the system allows.
        """
        self.bounds = replace(self.bounds, clients=count)
        self.peers.bounds = self.bounds

    def log(self, event: str, level: int = logging.INFO, **fields: object) -> None:
        """Write an event to the log.

        :param event: name of the event, in words.
        :param level: level of the module ``logging``.
        :param fields: details of the event.
        """
        _LOGGER.log(level, event, extra={"fields": fields})

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a background task, and hold a reference to it until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def health(self) -> dict[str, object]:
        """State of the service for monitors; ``status`` is ``stale`` if the source could not be read again."""
        current, fabric = self.store.current, self.store.current.routes.fabric
        problem = self.store.problem or self.command_problem
        return {
            "status": "stale" if problem else "ok",
            "problem": problem or None,
            "source": self.source,
            "generation": current.number,
            "loaded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(current.loaded)),
            "hosts": fabric.num_hosts,
            "switches": fabric.num_switches,
            "routes": current.routes.engine,
            "seconds": round(time.time() - self.started, 3),
        }

    def metrics(self) -> str:
        """Counters and gauges as text for Prometheus."""
        current = self.store.current
        gauges = {
            "clients": float(len(self.connections)),
            "peers": float(len(self.peers)),
            "busy": float(self.workers.busy),
            "held_bytes": float(self.held),
            "generation": float(current.number),
            "loaded_seconds": current.loaded,
            "stale": float(bool(self.store.problem or self.command_problem)),
            "hosts": float(current.routes.fabric.num_hosts),
        }
        return prometheus(PREFIX, self.counters, gauges)

    def answer_line(self, line: bytes) -> str:
        """Answer a text line ``query A:B`` with the switches between two hosts, without the line end."""
        self.counters.queries += 1
        answer = answer_line(line, self.store.current)
        if answer.startswith("error:"):
            self.counters.errors += 1
        return answer

    def answer_quick(self, request: dict[str, object]) -> dict[str, object] | None:
        """Make the fields of an answer that needs no worker process; None if the request is for a view or a tree."""
        match request["request"]:
            case "generation":
                return {"digest": self.store.current.digest}
            case "health":
                return self.health()
            case "counters":
                return {**asdict(self.counters), "clients": len(self.connections), "held_bytes": self.held}
        return None

    async def answer_slow(self, peer: PeerAccount, line: bytes, request: dict[str, object]) -> bytes | bytearray:
        """Let a worker process answer a request for a view or a tree; the work ends when the caller is cancelled.

        :param peer: the peer of the client that asks.
        :param line: the request as a line of JSON.
        :param request: the parsed request, whose ``id`` an error's answer repeats; empty if the line has not been
            parsed.
        """
        try:
            failed, answer = await self.workers.answer(peer, line)
        except RequestError as error:
            return self.encode(request, failure(error))
        except Exception as error:  # after an unexpected error the client still gets an answer
            _LOGGER.exception("request failed", extra={"fields": {"request": request.get("request")}})
            return self.encode(request, failure(error))
        self.counters.errors += failed
        return answer

    def encode(self, request: dict[str, object], fields: dict[str, object]) -> bytes:
        """Write an answer as a line of JSON, with the number of the current generation (loaded version of the routes).

        :param request: the request, whose ``id``, if any, is repeated.
        :param fields: fields of the answer.
        """
        if "error" in fields:
            self.counters.errors += 1
        return encode(request, fields, self.store.current.number)

    async def look(self) -> None:
        """Check all clients, peers and workers, and notify systemd's watchdog, once per second without end."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            notify("WATCHDOG=1")
            now = time.monotonic()
            for connection in list(self.connections):
                connection.look(now)
            self.peers.forget()
            self.workers.look()
            self._log_dropped()

    def _log_dropped(self) -> None:
        """Log one line per peer and reason, with the number of dropped clients."""
        for (peer, reason), count in self.dropped.items():
            self.log("client dropped", peer=peer, reason=reason, count=count)
        self.dropped.clear()

    async def follow(self, watch: Watch) -> None:
        """Read the source again, without end, whenever its files have changed and then stay the same for two checks."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if await in_thread(watch.is_due):
                watch.take()
                await self.reload(watch.is_unchanged)

    async def refresh(self, command: Sequence[str], every: float) -> None:
        """Run, without end, a command that writes the source's files at intervals; `follow` reads the files.

        :param command: program and its arguments.
        :param every: seconds from one run's end to the next start, and the time limit of a run.
        """
        while True:
            await asyncio.sleep(every)
            self.command_problem = await run_command(command, every)
            if self.command_problem:
                self.log("command failed", logging.WARNING, problem=self.command_problem)

    async def reload(self, is_valid: Callable[[], bool] = lambda: True) -> None:
        """Read the source again, while requests are answered from the routes read before.

        :param is_valid: callback that is called after reading; if it returns False, the new routes are discarded.
        """
        before = self.store.current.number
        try:
            async with self.workers.quiet:
                done = await in_thread(lambda: self.store.reload(is_valid))
        except Exception as error:
            _LOGGER.exception("reading failed", extra={"fields": {"source": self.source}})
            self.store.problem = f"{type(error).__name__}: {error}"
            done = False
        if done:
            self.counters.reloads += 1
            now = self.store.current.number
            self.log("new generation" if now > before else "nothing new", generation=now)
        elif self.store.problem:
            self.counters.failed_reloads += 1
            self.log("old generation stays", logging.WARNING, problem=self.store.problem)

    async def drain(self) -> None:
        """Answer open requests and close all connections; those still open after ``drain_seconds`` are aborted."""
        for connection in list(self.connections):
            connection.finish()
        ends = time.monotonic() + self.bounds.drain_seconds
        while self.connections and time.monotonic() < ends:
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        await self.workers.close()
        self._log_dropped()
