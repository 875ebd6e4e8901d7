"""What the clients of a topology service share: what is known, what was counted, what runs beside the event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Protocol

from ...errors import TopompiError
from .bounds import Bounds
from .commands import run_command
from .counters import Counters, prometheus
from .requests import answer_line, answer_slow, failure
from .store import Store
from .unit import notify
from .watch import Watch

__all__ = ["Client", "Service"]

LOOK_SECONDS = 1.0  # between two looks at the clients
WATCH_SECONDS = 0.4  # between two looks at the files: two alike make a change, so that it is read within 2 s
_LOGGER = logging.getLogger(__name__)


class Client(Protocol):
    """A connection, as the service sees it."""

    def look(self, now: float) -> None:
        """Do what is due at a time of the monotonic clock."""

    def finish(self) -> None:
        """Answer what has come, then close."""

    def abort(self) -> None:
        """Close at once."""


class Service:
    """What the connections share.

    :param store: holds what is known.
    :param source: where that came from, for health.
    :param bounds: of clients and requests.
    """

    def __init__(self, store: Store, source: str, bounds: Bounds | None = None) -> None:
        self.store, self.source, self.bounds = store, source, bounds or Bounds()
        self.counters = Counters()
        self.connections: set[Client] = set()
        self.held = 0  # bytes of requests not yet complete and of answers not yet taken
        self.slow_requests = 0  # views and trees under way
        self.started = time.time()
        self.command_problem = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._workers = ThreadPoolExecutor(2, "topology-view")

    def log(self, event: str, level: int = logging.INFO, **fields: object) -> None:
        """Write an event to the log.

        :param event: in words.
        :param level: of the module ``logging``.
        :param fields: that belong to it.
        """
        _LOGGER.log(level, event, extra={"fields": fields})

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin what ends by itself."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def health(self) -> dict[str, Any]:
        """Whether the service answers from what its source says now, else why not."""
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
            "held_bytes": float(self.held),
            "generation": float(current.number),
            "loaded_seconds": current.loaded,
            "stale": float(bool(self.store.problem or self.command_problem)),
            "hosts": float(current.routes.fabric.num_hosts),
        }
        return prometheus(self.counters, gauges)

    def answer_line(self, line: bytes) -> str:
        """The answer to a request of the line protocol."""
        self.counters.queries += 1
        answer = answer_line(line, self.store.current)
        if answer.startswith("error:"):
            self.counters.errors += 1
        return answer

    def answer_quick(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The fields of an answer that needs no work; None for those that do."""
        self.counters.requests += 1
        match request["request"]:
            case "generation":
                return {"digest": self.store.current.digest}
            case "health":
                return self.health()
            case "counters":
                return {**asdict(self.counters), "clients": len(self.connections), "held_bytes": self.held}
        return None

    async def answer_slow(self, request: dict[str, Any]) -> bytes:
        """The answer to a view or a tree that ``slow_requests`` counts, worked out in a thread from one generation."""
        generation = self.store.current

        def work() -> bytes:
            try:
                fields = answer_slow(request, generation, self.bounds)
            except (TopompiError, MemoryError) as error:
                fields = failure(error)
            return self.encode(request, fields, generation.number)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except Exception as error:  # a mistake of ours must not leave the client waiting
            _LOGGER.exception("request failed", extra={"fields": {"request": request["request"]}})
            return self.encode(request, failure(error), generation.number)
        finally:
            self.slow_requests -= 1

    def encode(self, request: dict[str, Any], fields: dict[str, Any], generation: int | None = None) -> bytes:
        """An answer as a line of JSON.

        :param request: whose ``id``, if any, it repeats.
        :param fields: of the answer.
        :param generation: that it comes from; by default the current one.
        """
        if "error" in fields:
            self.counters.errors += 1
        answer = {"generation": self.store.current.number if generation is None else generation} | fields
        if request.get("id") is not None:
            answer["id"] = request["id"]
        return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode() + b"\n"

    async def look(self) -> None:
        """Look at all clients, and tell systemd that there is life, once a second, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            notify("WATCHDOG=1")
            now = time.monotonic()
            for connection in list(self.connections):
                connection.look(now)

    async def follow(self, watch: Watch) -> None:
        """Read the source again whenever its files have changed and are at rest, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if await loop.run_in_executor(None, watch.is_due):
                watch.take()
                await self.reload(watch.is_unchanged)

    async def refresh(self, command: Sequence[str], every: float) -> None:
        """Run a command that writes the source's files again and again, for ever; `follow` reads what it wrote.

        :param command: the program and its arguments.
        :param every: seconds from one end to the next start, and those that it may take.
        """
        while True:
            await asyncio.sleep(every)
            self.command_problem = await run_command(command, every)
            if self.command_problem:
                self.log("command failed", logging.WARNING, problem=self.command_problem)

    async def reload(self, is_valid: Callable[[], bool] = lambda: True) -> None:
        """Read the source again, beside the answers.

        :param is_valid: see `Store.reload`.
        """
        before = self.store.current.number
        try:
            done = await asyncio.get_running_loop().run_in_executor(None, self.store.reload, is_valid)
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
        """Answer what is under way and close all connections; those that are too slow at once after a time."""
        for connection in list(self.connections):
            connection.finish()
        ends = time.monotonic() + self.bounds.drain_seconds
        while self.connections and time.monotonic() < ends:
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)
        self._workers.shutdown(wait=False, cancel_futures=True)
