"""Accounts of a service's peers (memory, work, answers), and the choice of clients to drop."""

from __future__ import annotations

from time import monotonic
from typing import Protocol

from .bounds import Bounds

__all__ = ["Client", "PeerAccount", "Peers", "Spent"]

ROOM = 8  # clients are dropped until 1/ROOM of ``held_bytes`` is free, so that the search is not repeated at once


class Client(Protocol):
    """The interface of a client, that is, of a connection to the service.

    :param held: bytes of incomplete requests and unread answers.
    """

    held: int

    def look(self, now: float) -> None:
        """Do the work that is due once per second; ``now`` is the time of the monotonic clock in seconds."""

    def finish(self) -> None:
        """Answer the received requests, then close the connection."""

    def abort(self) -> None:
        """Close at once."""

    def drop(self, reason: str, words: bytes = b"") -> None:
        """Close at once.

        :param reason: reason for the log.
        :param words: error message for the client.
        """


class Spent:
    """The amount that a peer has spent from a budget of ``bound``; an amount of ``bound`` is restored per minute.

    :param bound: the budget, in any unit; if more is spent and not yet restored, the peer has to wait.
    """

    __slots__ = ("_amount", "_at", "bound")

    def __init__(self, bound: float) -> None:
        self.bound, self._amount, self._at = bound, 0.0, monotonic()

    @property
    def amount(self) -> float:
        """The amount spent and not yet restored."""
        now = monotonic()
        self._amount = max(0.0, self._amount - (now - self._at) * self.bound / 60)
        self._at = now
        return self._amount

    def add(self, amount: float) -> None:
        """Add to the amount spent."""
        self._amount = self.amount + amount

    @property
    def wait(self) -> float:
        """Seconds until the amount is within the bound again; 0 if it is now."""
        return max(0.0, self.amount - self.bound) * 60 / self.bound


class PeerAccount:
    """The account of a peer, that is, of a user of the service's host, or of another host.

    :param name: name of the peer, see `identity.peer_of`.
    :param bounds: the service's limits.
    """

    __slots__ = ("bytes", "connections", "held", "name", "seconds")

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name = name
        self.connections: dict[Client, None] = {}  # in the order of their last request, longest silent first
        self.held = 0  # bytes of incomplete requests and unread answers
        self.seconds, self.bytes = Spent(bounds.peer_seconds), Spent(bounds.peer_bytes)


class Peers:
    """The peers that have clients, or have spent from their budgets an amount that is not yet restored.

    :param bounds: the service's limits.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._peers: dict[str, PeerAccount] = {}
        self.held = 0  # bytes held for all peers together

    def __len__(self) -> int:
        return len(self._peers)

    def named(self, name: str) -> PeerAccount:
        """The peer with a name, created if it is new."""
        return self._peers.setdefault(name, PeerAccount(name, self.bounds))

    def hold(self, peer: PeerAccount, count: int) -> None:
        """Add bytes to the memory held for one peer; a negative count releases memory.

        :param peer: the peer whose client occupies or releases the memory.
        :param count: number of bytes.
        """
        peer.held += count
        self.held += count

    def forget(self) -> None:
        """Delete the peers that have no clients and whose budgets are fully restored."""
        for peer in list(self._peers.values()):
            if not peer.connections and not peer.seconds.amount and not peer.bytes.amount:
                del self._peers[peer.name]

    def make_room(self) -> None:
        """If all peers hold too many bytes, drop the clients that hold most, of the peers that hold most."""
        bound = self.bounds.held_bytes
        while self.held > bound:
            self._shrink(max(self._peers.values(), key=lambda peer: peer.held), bound - bound // ROOM)

    def _shrink(self, peer: PeerAccount, enough: int) -> None:
        """Drop a peer's clients that hold most, until it holds half as much, or all peers together at most ``enough``.

        :param peer: the peer whose clients are dropped.
        :param enough: number of bytes that all peers together may hold.
        """
        half = peer.held // 2
        for connection in sorted(peer.connections, key=lambda one: one.held, reverse=True):
            if peer.held <= half or self.held <= enough:
                return
            connection.drop("requests and answers of all clients take too much memory, and this peer's most")

    def make_place(self) -> None:
        """Close the longest silent client of the peer with most clients, to make place for a new one."""
        peer = max(self._peers.values(), key=lambda peer: len(peer.connections))
        words = f"error: expecting at most {self.bounds.clients:,} clients, got one more\n"
        next(iter(peer.connections)).drop("there were too many clients, and this peer had most", words.encode())
