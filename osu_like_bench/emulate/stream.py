"""One end of a TCP connection, on sockets alone: ``stream.py receive|send|echo|ping ADDRESS PORT``.

The program prints ``ready`` once it is connected, and then reads a begin and an end time of the monotonic clock, which
all hosts share. ``receive`` prints the bits/s that arrive between these times, ``ping`` the median round trip of one
byte in seconds. The file is run by its path, so that no other module is imported.
"""

import socket
import sys
import time

CHUNK = 1 << 16


def receive(connection: socket.socket, begin: float, end: float) -> None:
    """Print the bits/s that arrive between begin and end; receive until the other end closes the connection.

    :param connection: the open connection.
    :param begin: begin of the measurement, by ``time.monotonic``.
    :param end: end of the measurement, by ``time.monotonic``.
    """
    got = 0
    while data := connection.recv(CHUNK):
        if begin <= time.monotonic() < end:
            got += len(data)
    print(8 * got / (end - begin))


def send(connection: socket.socket, begin: float, end: float) -> None:
    """Send data without pause until the end time.

    :param connection: the open connection.
    :param begin: begin of the measurement, by ``time.monotonic``; ignored.
    :param end: end of the measurement, by ``time.monotonic``.
    """
    data = bytes(CHUNK)
    while time.monotonic() < end:
        connection.sendall(data)


def echo(connection: socket.socket, begin: float, end: float) -> None:
    """Send back every received byte until the other end closes the connection.

    :param connection: the open connection.
    :param begin: begin of the measurement, by ``time.monotonic``; ignored.
    :param end: end of the measurement, by ``time.monotonic``; ignored.
    """
    while data := connection.recv(CHUNK):
        connection.sendall(data)


def ping(connection: socket.socket, begin: float, end: float) -> None:
    """Send a byte and wait for its return, repeatedly until the end; print the median round trip in seconds.

    :param connection: the open connection.
    :param begin: begin of the measurement, by ``time.monotonic``; ignored.
    :param end: end of the measurement, by ``time.monotonic``.
    """
    times: list[float] = []
    while not times or time.monotonic() < end:
        start = time.perf_counter()
        connection.sendall(b"x")
        connection.recv(1)
        times.append(time.perf_counter() - start)
        time.sleep(0.002)
    print(sorted(times)[len(times) // 2])


def _accept(address: str, port: int) -> socket.socket:
    with socket.create_server((address, port)) as server:
        server.settimeout(30)
        return server.accept()[0]


def _connect(address: str, port: int) -> socket.socket:
    """Connect; retry for 20 seconds while nobody listens."""
    until = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port), timeout=20)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    what, at, number = sys.argv[1:]
    with (_accept if what in ("receive", "echo") else _connect)(at, int(number)) as opened:
        opened.settimeout(30)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        window = [float(word) for word in sys.stdin.readline().split()]
        {"receive": receive, "send": send, "echo": echo, "ping": ping}[what](opened, *window)
