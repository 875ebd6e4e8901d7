"""What one client, one peer, and all of them together, may ask of a topology service."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds"]


@dataclass(frozen=True)
class Bounds:
    """The bounds of a service; all have a default that a job of thousands of hosts does not meet.

    A client is a connection; a peer is a user of the service's host, or another host, with all of its clients.

    :param clients: connections at once; for a further one the longest silent of the largest peer is closed.
    :param line_bytes: of one request.
    :param hosts: of one view, where a request names them; the whole fabric may have more.
    :param matrix_hosts: of a view with a matrix of hosts by hosts.
    :param entries: of the routes of a view: paths x switches x adapters.
    :param rate: requests a second from one client; the further ones wait.
    :param waiting: views and trees asked for at once; for a further one the last of the peer with most is refused.
    :param held_bytes: of requests not yet complete and answers not yet taken, of all clients together; beyond them the
        largest clients of the largest peers are dropped.
    :param workers: views and trees in work at once, one of each peer.
    :param work_seconds: seconds of work for one view or tree at most.
    :param work_bytes: bytes of memory for its work at most.
    :param answer_bytes: bytes of its answer at most.
    :param peer_seconds: seconds of work for one peer; as many again each minute.
    :param peer_bytes: bytes of answers to its views and trees; as many again each minute.
    :param request_seconds: from the first byte of a request to its end.
    :param stall_seconds: in which a client takes less than 1 MiB of the answers that wait for it.
    :param idle_seconds: between two requests.
    :param drain_seconds: for what is under way when the service ends.
    """

    clients: int = 16_384
    line_bytes: int = 1 << 20
    hosts: int = 8_192
    matrix_hosts: int = 1_024
    entries: int = 1 << 23
    rate: int = 50_000
    waiting: int = 64
    held_bytes: int = 1 << 28
    workers: int = 4
    work_seconds: float = 10.0
    work_bytes: int = 1 << 30
    answer_bytes: int = 1 << 27
    peer_seconds: float = 30.0
    peer_bytes: int = 1 << 30
    request_seconds: float = 10.0
    stall_seconds: float = 10.0
    idle_seconds: float = 3_600.0
    drain_seconds: float = 5.0
