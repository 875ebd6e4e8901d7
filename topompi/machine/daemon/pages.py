"""Texts of a daemon over HTTP, for a browser or for Prometheus: read only, in a thread of its own."""

from __future__ import annotations

import io
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ...errors import SettingError

__all__ = ["audience", "is_loopback", "parse_address", "served"]

# Path of a request -> function that returns the media type and the text of the answer.
Pages = Mapping[str, Callable[[], tuple[str, str]]]
SECONDS = 10.0  # within which a whole request must have come, and within which a client must take a whole answer
MOST_CLIENTS = 32  # connections at once; a further one is closed at once
MOST_BYTES = 16_384  # of a request with its headers


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``host:port`` or ``port``, whose host is 127.0.0.1.

    :raises SettingError: if the text is malformed.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise SettingError(f"expecting an address such as 127.0.0.1:9090, or a port, got {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine only.

    :param host: an IP address or a name; of names only ``localhost`` is.
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def audience(host: str) -> str:
    """Say who may connect to an address that pages are served at: nobody is asked who he is.

    :param host: an IP address or a name.
    """
    who = "every user of this machine" if is_loopback(host) else "everybody who reaches this machine's address"
    return f"{who} can read it, and nobody is asked who he is"


@contextmanager
def served(address: tuple[str, int], pages: Pages) -> Iterator[int]:
    """Answer requests of these pages as long as the context is open; the value is the port.

    At a loopback address only requests for a loopback host are answered, so that no page of the web, whose name leads
    to this machine, reads these pages in a browser that runs here.

    :param address: host and port; port 0 for a free one.
    :param pages: the pages by path; others answer 404, and a function that raises an error 500.
    :raises OSError: if the address is in use or not this machine's.
    """
    server = _Server(address, _Handler)
    server.pages = pages
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    pages: Pages

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.free = threading.BoundedSemaphore(MOST_CLIENTS)
        self.turn = threading.Lock()  # pages are made one at a time, however many clients ask

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there are not too many."""
        if not self.free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a client; errors of its connection are its own."""
        try:
            with suppress(OSError):
                self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            self.free.release()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        """Read the whole request, within limits of bytes and seconds, before any of it is parsed."""
        super().setup()
        self.rfile = io.BufferedReader(io.BytesIO(_request(self.connection)))
        self.connection.settimeout(SECONDS)

    def do_GET(self) -> None:
        asked = self.headers.get("Host", "localhost")
        host = asked if asked.endswith("]") else asked.rpartition(":")[0] or asked
        if is_loopback(str(self.server.server_address[0])) and not is_loopback(host):
            self.send_error(403, explain="expecting a request for localhost")
            return
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(404)
            return
        try:
            with self.server.turn:
                kind, text = page()
        except Exception as error:
            self.send_error(500, explain=str(error))
            return
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the daemon's log is about its own events."""


def _request(connection: socket.socket) -> bytes:
    """Read a request up to the empty line after its headers; return b"" if it is too long or takes too long.

    :param connection: the client's connection.
    """
    until, found = time.monotonic() + SECONDS, bytearray()
    while b"\r\n\r\n" not in found and b"\n\n" not in found:
        left = until - time.monotonic()
        if left <= 0 or len(found) > MOST_BYTES:
            return b""
        connection.settimeout(left)
        try:
            part = connection.recv(4096)
        except TimeoutError:
            return b""
        if not part:
            break
        found += part
    return bytes(found)
