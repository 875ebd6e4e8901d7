"""Limits on the use of a topology service by one client, by one peer, and by all peers together."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds"]


@dataclass(frozen=True)
class Bounds:
    """The limits of a service; a job of thousands of hosts stays within all the defaults.

    A client is one connection. A peer is a user of the service's host, or another host, with all of its clients. A view
    is the part of the routes that joins a job's hosts; a tree is the cluster tree of all hosts.

    :param clients: maximum number of connections; when a further client connects, the longest silent connection of the
        peer with most connections is closed.
    :param line_bytes: maximum size of a request in bytes.
    :param hosts: maximum number of host names in a request for a view; a request without names, for all hosts, is not
        limited by it.
    :param matrix_hosts: maximum number of hosts of a view with a hosts x hosts matrix.
    :param entries: maximum number of next-hop links of a view: alternative routes x switches x destination adapters.
    :param rate: maximum number of requests per second from one client; further requests wait.
    :param waiting: maximum number of requests for views and trees that wait or are being computed; if there is one
        more, the last request of the peer with most of these requests is refused.
    :param held_bytes: maximum number of bytes of incomplete requests and unread answers of all clients; if it is
        exceeded, connections are closed, beginning with the largest client of the largest peer.
    :param workers: maximum number of views and trees that are computed at the same time; at most one per peer.
    :param work_seconds: maximum time in seconds of the work for one view or tree.
    :param work_bytes: maximum memory in bytes of the work for one view or tree.
    :param answer_bytes: maximum size in bytes of the answer to one view or tree.
    :param peer_seconds: budget of a peer in seconds of work; this amount is restored each minute.
    :param peer_bytes: budget of a peer in bytes of answers to views and trees; this amount is restored each minute.
    :param request_seconds: maximum time in seconds from the first byte of a request to its end.
    :param stall_seconds: time in seconds within which a client has to read 1 MiB of its waiting answers.
    :param idle_seconds: maximum silence in seconds between two requests.
    :param drain_seconds: time in seconds for answering open requests when the service ends.
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
