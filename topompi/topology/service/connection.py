"""A client's connection to a topology service, on which requests are answered in order and within limits."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from ...errors import TopompiError
from .http import MAX_HEADERS, respond
from .identity import peer_of
from .requests import failure, parse_request

if TYPE_CHECKING:
    from .state import Service

__all__ = ["Connection"]

UNCOUNTED_BYTES = 1 << 14  # bytes; a client's unread answers up to this size do not count towards ``held_bytes``
MOVING_BYTES = 1 << 20  # bytes; a client that reads this many within ``stall_seconds`` is not dropped as slow
FLUSH_BYTES = 1 << 16  # bytes; answers to lines that arrived together are sent together up to this size
QUICK_BYTES = 1 << 12  # bytes; a worker process parses longer lines of JSON, because they would block the event loop
TURN_SECONDS = 0.002  # seconds of answering one client, after which other clients get their turn


class Connection(asyncio.Protocol):
    """The connection of one client: it reads requests and writes answers.

    Work on a request starts when the previous request is answered and the client has read most of its answers. Until
    then nothing more is read from the client, so that it occupies no memory beyond its buffers.

    :param service: the service that answers.
    """

    __slots__ = (
        "asked",
        "buffer",
        "busy",
        "ending",
        "headers",
        "held",
        "last",
        "left",
        "page",
        "peer",
        "postponed",
        "searched",
        "service",
        "since",
        "stalled",
        "transport",
        "unsent",
    )

    def __init__(self, service: Service) -> None:
        self.service = service
        self.buffer = bytearray()
        self.searched = 0  # number of leading bytes of the buffer that are known to contain no line end
        self.page, self.headers = "", 0  # requested page and number of header lines of an HTTP request
        self.busy: asyncio.Task[None] | None = None  # the view or tree in work
        self.ending = self.postponed = False
        self.asked = 0  # number of requests in the current second
        self.unsent = 0  # bytes of unread answers if they exceeded UNCOUNTED_BYTES, else 0; a part of ``held``
        self.held = 0  # bytes charged to the peer: unread answers and incomplete requests
        self.since = 0.0  # start time of the incomplete request; 0 if there is none
        self.left = 0  # unread bytes of answers at the time ``stalled``, to see how many were read since
        self.stalled = 0.0  # start time of the client's delay in reading answers; 0 if there is none
        self.last = monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the client; if there are too many clients, close the connection of another one."""
        assert isinstance(transport, asyncio.Transport)  # for the type checker: the connection is a stream
        self.transport: asyncio.Transport = transport
        transport.set_write_buffer_limits(high=UNCOUNTED_BYTES)
        service, socket = self.service, transport.get_extra_info("socket")
        self.peer = service.peers.named("nobody" if socket is None else peer_of(socket))
        self.peer.connections[self] = None
        service.connections.add(self)
        service.counters.connections += 1
        if len(service.connections) > service.bounds.clients:
            service.peers.make_place()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the client and cancel its work."""
        if self in self.service.connections:
            self.buffer, self.unsent = bytearray(), 0
            self._charge()
            self.service.connections.discard(self)
            self.peer.connections.pop(self)
        if self.busy is not None:
            self.busy.cancel()

    def pause_writing(self) -> None:
        """Record that the client is slow in reading its answers: the write buffer is full."""
        self.stalled = self.stalled or monotonic()
        self.unsent = self.left = self.transport.get_write_buffer_size()
        self._charge()

    def resume_writing(self) -> None:
        """Continue after the client has read its answers."""
        # A client that is closing has a time limit for reading the rest, too.
        self.stalled = monotonic() if self.transport.is_closing() else 0.0
        self.unsent = 0
        self._advance()

    def _charge(self) -> None:
        """Charge the peer for the memory that this client occupies now.

        If all peers together hold too much, the largest clients are dropped.
        """
        held = len(self.buffer) + self.unsent
        if held != self.held and self in self.service.connections:
            self.service.peers.hold(self.peer, held - self.held)
            self.held = held
            self.service.peers.make_room()

    def eof_received(self) -> bool:
        """Note that the client sends no more requests; those received are still answered."""
        self.ending = True
        self._advance()
        return True

    def data_received(self, data: bytes) -> None:
        """Buffer the received bytes and answer the complete requests."""
        if self.ending:
            return
        self.buffer += data
        self.last = monotonic()
        self.peer.connections[self] = self.peer.connections.pop(self)  # to the end: longest silent first
        self._advance()

    def finish(self) -> None:
        """Answer the received requests, then close, because the service ends."""
        self.ending = True
        self.asked = -(1 << 62)  # no rate limit any more
        self._advance()

    def drop(self, reason: str, words: bytes = b"") -> None:
        """Close at once.

        :param reason: reason for the log.
        :param words: error message for the client, sent if it can be written at once.
        """
        self.service.counters.dropped += 1
        self.service.dropped[self.peer.name, reason] += 1
        if words and not self.transport.is_closing():
            self.transport.write(words)
        self.abort()

    def abort(self) -> None:
        """Close at once and release all memory."""
        self.ending = True
        self.transport.abort()
        self.connection_lost(None)

    def look(self, now: float) -> None:
        """Drop a client that is slow or silent, and continue one that was at its rate limit; called once per second.

        :param now: current time of the monotonic clock in seconds.
        """
        bounds = self.service.bounds
        throttled = self.asked >= bounds.rate
        self.asked = min(self.asked, 0)
        if self.stalled and self.left - self.transport.get_write_buffer_size() > MOVING_BYTES:
            self.stalled, self.left = now, self.transport.get_write_buffer_size()
        if self.stalled and now - self.stalled > bounds.stall_seconds:
            self.drop("it does not take its answers")
        elif self.busy is not None:
            self.transport.write(b" ")  # JSON ignores the blank, but writing it reveals that a client has left
        elif self.since and not self.stalled and now - self.since > bounds.request_seconds:
            self.drop("its request does not end")
        elif not self.stalled and now - self.last > bounds.idle_seconds:
            self.drop("it was silent")
        elif throttled:
            self._advance()

    def _may_go_on(self) -> bool:
        waits = self.busy is not None or self.stalled or self.asked >= self.service.bounds.rate
        return not (waits or self.transport.is_closing())

    def _advance(self) -> None:
        """Answer complete requests until none is left or this client's turn ends."""
        at, size = 0, 0
        answers: list[bytes] = []
        longest, until = self.service.bounds.line_bytes, 0.0
        self.postponed = False
        while self._may_go_on() and not self.postponed:
            end = self.buffer.find(b"\n", at or self.searched)
            if (len(self.buffer) if end < 0 else end) - at > longest:
                self._consume(len(self.buffer))
                self._end(b"".join(answers) + f"error: expecting at most {longest:,} bytes a line, got more\n".encode())
                return
            if end < 0:
                self.searched = len(self.buffer)
                break
            answer = self._answer(bytes(self.buffer[at:end]))
            at = end + 1
            answers.append(answer)
            size += len(answer)
            if size > FLUSH_BYTES:
                self.transport.write(b"".join(answers))
                answers, size = [], 0
            if at < len(self.buffer):
                until = until or monotonic() + TURN_SECONDS
                self.postponed = monotonic() > until
        self._consume(at)
        if answers:
            self.transport.write(b"".join(answers))
        self._arrange()

    def _consume(self, count: int) -> None:
        if count:
            del self.buffer[:count]  # the buffer is already empty if the client was dropped meanwhile
            self.searched = max(0, self.searched - count)
            self.since = 0.0
        self._charge()

    def _arrange(self) -> None:
        """Resume or pause reading; close if the client has ended and all is answered."""
        going = self._may_go_on()
        if self.buffer and not self.since and going:
            self.since = monotonic()
        if self.page and not self.since:
            self.since = monotonic()
        if going and self.postponed:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._advance)
        elif going and self.ending:
            self._end()
        elif going:
            self.transport.resume_reading()
        elif not self.transport.is_closing():
            self.transport.pause_reading()

    def _end(self, words: bytes = b"") -> None:
        """Close after the client has read all that was written."""
        self.ending = True
        if words and not self.transport.is_closing():
            self.transport.write(words)
        self.stalled = self.stalled or monotonic()
        self.transport.close()

    def _answer(self, line: bytes) -> bytes:
        """The answer to one line; empty if the answer comes later."""
        self.asked += 1
        if self.page or line.startswith(b"GET "):
            return self._answer_http(line.rstrip(b"\r"))
        if line.lstrip()[:1] == b"{":
            return self._answer_json(line)
        return self.service.answer_line(line).encode() + b"\n"

    def _answer_http(self, line: bytes) -> bytes:
        if not self.page:
            self.page = line.decode("latin-1")[4:].partition(" ")[0] or "/"
            return b""
        self.headers += 1
        if line and self.headers < MAX_HEADERS:
            return b""
        response = respond(self.page, self.service)
        self.page, self.ending = "", True
        return response

    def _answer_json(self, line: bytes) -> bytes:
        self.service.counters.requests += 1
        request: dict[str, object] = {}
        if len(line) <= QUICK_BYTES:
            try:
                request = parse_request(line)
            except TopompiError as error:
                return self.service.encode({}, failure(error))
            quick = self.service.answer_quick(request)
            if quick is not None:
                return self.service.encode(request, quick)
        self.busy = self.service.start(self._answer_later(line, request))
        return b""

    async def _answer_later(self, line: bytes, request: dict[str, object]) -> None:
        answer = await self.service.answer_slow(self.peer, line, request)
        self.busy = None
        if self.transport.is_closing():
            return
        self.last = monotonic()
        self.transport.write(answer)
        self._advance()
