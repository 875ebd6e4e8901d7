"""The client of a topology service: its address, and requests with a time limit. Standard library only."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import ServiceError
from ..inputs.jsontext import parse_json
from ..inputs.limits import current_limits

__all__ = ["Address", "ask", "ask_line"]

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 10.0
PAUSE_SECONDS = 0.2  # seconds between the first attempt and the second
CHUNK = 1 << 16
SHORT_BYTES = 1 << 20  # bytes; limits an answer that contains no topology

_TCP = re.compile(r"(?:tcp://)?(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:/\s\[\]]+)):([0-9]{1,5})/?")
T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    """The address at which a service listens: a host and a port, or the path of a UNIX socket.

    :param host: name or IP address of the host; empty for a UNIX socket.
    :param port: TCP port; 0 lets the system choose a free one.
    :param path: path of the UNIX socket; empty for TCP.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    @staticmethod
    def is_named_by(text: str) -> bool:
        """Whether a user's name of a topology source has the form of a service's address."""
        return text.startswith(("tcp://", "unix:"))

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address ``tcp://HOST:PORT``, ``HOST:PORT`` or ``unix:PATH``; ServiceError for another text."""
        if text.startswith("unix:") and len(text) > len("unix:"):
            return cls(path=text.removeprefix("unix:").removeprefix("//"))
        match = _TCP.fullmatch(text)
        if match is None or int(match[3]) > 65_535:
            raise ServiceError(f"expecting tcp://HOST:PORT or unix:PATH, got {text[:80]!r}")
        return cls(match[1] or match[2], int(match[3]))

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"

    def connect(self) -> socket.socket:
        """Open a connection to the service; OSError if this fails or takes longer than CONNECT_SECONDS."""
        if not self.path:
            return socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(self.path)
        except BaseException:
            connection.close()
            raise
        return connection


def ask(
    address: Address, request: dict[str, object], seconds: float = ANSWER_SECONDS, *, short: bool = False
) -> dict[str, Any]:
    """Send a request to the service and return its JSON object; a failed first attempt is repeated once.

    :param address: address of the service.
    :param request: request as `topompi.topology.service` documents it, for example ``{"request": "health"}``.
    :param seconds: time limit in seconds of one attempt, counted from its connection.
    :param short: whether the answer contains no topology; if so, it is limited to ``SHORT_BYTES``, else to the limit
        ``answer`` of `topompi.inputs.Limits`.
    :raises ServiceError: if both attempts fail, with the reason of the second; if an answer is too long.
    """
    text = json.dumps(request)

    def once() -> dict[str, Any]:
        answer = parse_json(_exchange(address, text, seconds, short), str(address), ServiceError)
        if not isinstance(answer, dict):
            raise ServiceError(f"{address}: expecting an object of JSON, got {type(answer).__name__}")
        return answer

    return _twice(address, once)


def ask_line(address: Address, line: str, seconds: float = ANSWER_SECONDS) -> str:
    """Send a request in the service's protocol of text lines, and return the answer without its line end.

    :param address: address of the service.
    :param line: request, for example ``query a:b``.
    :param seconds: time limit in seconds of one attempt, counted from its connection.
    :raises ServiceError: if both attempts fail, with the reason of the second.
    """
    return _twice(address, lambda: _exchange(address, line, seconds, True).decode("utf-8", errors="replace"))


def _twice(address: Address, once: Callable[[], T]) -> T:
    try:
        return once()
    except (ServiceError, OSError):
        time.sleep(PAUSE_SECONDS)
    try:
        return once()
    except OSError as problem:
        reason = "no answer in time" if isinstance(problem, TimeoutError) else problem.strerror or str(problem)
        raise ServiceError(f"{address}: expecting a topology service, got: {reason}") from problem


def _exchange(address: Address, line: str, seconds: float, short: bool) -> bytes:
    """Send one line and receive one line, which is returned without its line end.

    :param address: address of the service.
    :param line: line to send, without its line end.
    :param seconds: time limit in seconds for sending and receiving.
    :param short: whether the answer is limited to ``SHORT_BYTES``.
    """
    if "\n" in line or "\r" in line:
        raise ServiceError(f"expecting a request of one line, got {line[:80]!r}")
    with address.connect() as connection:
        ends = time.monotonic() + seconds
        connection.settimeout(seconds)
        connection.sendall(line.encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            left = ends - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            received = connection.recv(CHUNK)
            if not received:
                raise ServiceError(f"{address}: expecting an answer of one line, got {len(answer)} bytes of it")
            answer += received
            if short and len(answer) > SHORT_BYTES:
                raise ServiceError(f"{address}: expecting at most {SHORT_BYTES:,} bytes of this answer, got more")
            current_limits().check("answer", len(answer), str(address), ServiceError)
    return bytes(answer[:-1])
