"""A process that works out views and trees, and can be ended at any time."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import struct
from contextlib import suppress
from typing import Any, NoReturn

from ...errors import TopompiError
from .bounds import Bounds
from .generation import Generation
from .requests import RequestError, answer_slow, encode, failure, parse_request

__all__ = ["Worker", "WorkerError"]

NICENESS = 10  # of workers: quick answers come first
_LOGGER = logging.getLogger(__name__)
_LINE, _ANSWER = struct.Struct("=Q"), struct.Struct("=?Q")  # what goes before a line, and before an answer
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # sent to all processes of a unit or a terminal


class WorkerError(RequestError):
    """A worker ended before its answer."""


class Worker:
    """A process that answers from one generation, one request at a time.

    It is forked, and so shares the memory of the generation. Whoever makes one sees to it that no thread of this
    process reads a source meanwhile: what it has locked would stay locked in the new process.

    :param generation: from which it answers.
    :param bounds: the service's bounds.
    """

    def __init__(self, generation: Generation, bounds: Bounds) -> None:
        self.generation, self._bounds = generation, bounds
        self._channel, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _work(theirs, generation, bounds)
        theirs.close()
        self._channel.setblocking(False)

    async def answer(self, line: bytes) -> tuple[bool, bytearray]:
        """Whether a request failed, and the answer.

        :param line: a line of JSON.
        :raises WorkerError: if the process ended over it: its time was over, or the system was out of memory. The
            worker is of no use afterwards, nor where the caller is cancelled.
        """
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._channel, _LINE.pack(len(line)) + line)
            failed, size = _ANSWER.unpack(await self._receive(_ANSWER.size))
            return failed, await self._receive(size)
        except OSError:
            self.end()
            wanted = f"an answer within {self._bounds.work_seconds:g} seconds of work"
            raise WorkerError(f"expecting {wanted}, got none: ask for fewer hosts or fields") from None
        except asyncio.CancelledError:
            self.end()
            raise

    async def _receive(self, count: int) -> bytearray:
        loop, data, at = asyncio.get_running_loop(), bytearray(count), 0
        with memoryview(data) as view:
            while at < count:
                received = await loop.sock_recv_into(self._channel, view[at:])
                if not received:
                    raise ConnectionError
                at += received
        return data

    def end(self) -> None:
        """End the process, whatever it does."""
        self._channel.close()
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    def is_gone(self) -> bool:
        """Whether the process, which was told to end, has ended."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return not self._pid


def _work(channel: socket.socket, generation: Generation, bounds: Bounds) -> NoReturn:
    """Answer lines until the service closes the channel; the kernel ends the process when a line takes too long."""
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # the service says when it is over
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _close_all_but(channel.fileno())
        _limit_memory(bounds.work_bytes)
        with suppress(OSError):  # where the system forbids it
            os.nice(NICENESS)
        gc.freeze()  # what was there before stays shared: nobody writes into its headers
        while line := _read_line(channel):
            signal.setitimer(signal.ITIMER_REAL, bounds.work_seconds)
            failed, answer = _answered(line, generation, bounds)
            channel.sendall(_ANSWER.pack(failed, len(answer)))
            channel.sendall(answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        os._exit(0)  # nothing of the service's is tidied up here


def _close_all_but(channel: int) -> None:
    """Close what was open before: a client that the service drops is not to stay connected to this process."""
    os.closerange(3, channel)
    os.closerange(channel + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _limit_memory(count: int) -> None:
    """Refuse this process more than so many bytes beyond what it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[5]) * resource.getpagesize()
    with suppress(OSError, ValueError):  # a limit below is in force
        resource.setrlimit(resource.RLIMIT_DATA, (now + count, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _read_line(channel: socket.socket) -> bytes:
    """The next request; empty when the service wants no more."""
    head = channel.recv(_LINE.size, socket.MSG_WAITALL)
    return channel.recv(_LINE.unpack(head)[0], socket.MSG_WAITALL) if len(head) == _LINE.size else b""


def _answered(line: bytes, generation: Generation, bounds: Bounds) -> tuple[bool, bytes]:
    """Whether a request failed, and the answer."""
    request: dict[str, Any] = {}
    try:
        request = parse_request(line)
        answer = encode(request, answer_slow(request, generation, bounds), generation.number)
        if len(answer) <= bounds.answer_bytes:
            return False, answer
        raise RequestError(f"expecting an answer of at most {bounds.answer_bytes:,} bytes, got {len(answer):,}")
    except MemoryError:
        problem: Exception = RequestError(f"expecting at most {bounds.work_bytes:,} bytes of memory for an answer")
    except TopompiError as error:
        problem = error
    except Exception as error:  # a mistake of ours must not leave the client waiting
        _LOGGER.exception("request failed", extra={"fields": {"request": request.get("request")}})
        problem = error
    return True, encode(request, failure(problem), generation.number)
