"""A worker process that computes views and trees and can be killed at any time."""

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
from typing import NoReturn

from ...errors import TopompiError
from ...inputs.kernel import kernel_text
from .bounds import Bounds
from .generation import Generation
from .requests import RequestError, answer_slow, encode, failure, parse_request

__all__ = ["Worker", "WorkerError"]

NICENESS = 10  # steps by which workers' priority is lower, because the service's quick answers come first
_LOGGER = logging.getLogger(__name__)
_LINE, _ANSWER = struct.Struct("=Q"), struct.Struct("=?Q")  # headers: length of a line; failure and length of an answer
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # ignored, because systemd and terminals send them to workers


class WorkerError(RequestError):
    """An error: a worker process ended before it answered."""


class Worker:
    """A process that answers from one generation (loaded version of the routes), one request at a time.

    The process is forked, so that it shares the generation's memory. During the fork no thread of the service may read
    a source, because locks that the thread holds would stay locked in the new process.

    :param generation: the loaded version of the routes to answer from.
    :param bounds: the service's limits.
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
        """Let the process answer a request; returns whether the request failed, and the answer.

        :param line: the request as a line of JSON.
        :raises WorkerError: if the process ended before it answered, because its time or its memory was exceeded. After
            this error, and after a cancellation of the caller, the worker is unusable.
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
        """Kill the process, at whatever point of its work."""
        self._channel.close()
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    def is_gone(self) -> bool:
        """Whether the process has ended after `end`."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return not self._pid


def _work(channel: socket.socket, generation: Generation, bounds: Bounds) -> NoReturn:
    """Answer lines until the service closes the channel; the kernel kills the process if one line takes too long.

    :param channel: socket to the service.
    :param generation: the loaded version of the routes to answer from.
    :param bounds: the service's limits.
    """
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # only the service ends its workers
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _close_all_but(channel.fileno())
        _limit_memory(bounds.work_bytes)
        with suppress(OSError):  # if the system forbids it
            os.nice(NICENESS)
        gc.freeze()  # the garbage collector must not write to inherited objects, so that their memory stays shared
        while line := _read_line(channel):
            signal.setitimer(signal.ITIMER_REAL, bounds.work_seconds)
            failed, answer = _answered(line, generation, bounds)
            channel.sendall(_ANSWER.pack(failed, len(answer)))
            channel.sendall(answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        os._exit(0)  # without the service's exit handlers


def _close_all_but(channel: int) -> None:
    """Close all inherited files, so that a client that the service drops is not kept connected by this process.

    :param channel: file descriptor that stays open.
    """
    os.closerange(3, channel)
    os.closerange(channel + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _limit_memory(count: int) -> None:
    """Limit the data memory of this process to ``count`` bytes more than it has now."""
    now = int(kernel_text("/proc/self/statm").split()[5]) * resource.getpagesize()
    with suppress(OSError, ValueError):  # if a lower limit is already in force
        resource.setrlimit(resource.RLIMIT_DATA, (now + count, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _read_line(channel: socket.socket) -> bytes:
    """The next request; empty when the service has closed the channel."""
    head = channel.recv(_LINE.size, socket.MSG_WAITALL)
    return channel.recv(_LINE.unpack(head)[0], socket.MSG_WAITALL) if len(head) == _LINE.size else b""


def _answered(line: bytes, generation: Generation, bounds: Bounds) -> tuple[bool, bytes]:
    """Answer a request; returns whether it failed, and the answer."""
    request: dict[str, object] = {}
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
    except Exception as error:  # after an unexpected error the client still gets an answer
        _LOGGER.exception("request failed", extra={"fields": {"request": request.get("request")}})
        problem = error
    return True, encode(request, failure(problem), generation.number)
