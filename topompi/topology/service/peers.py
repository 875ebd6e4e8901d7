"""What each peer of a service holds and has spent, and who has to go where all together hold too much."""

from __future__ import annotations

from time import monotonic
from typing import Protocol

from .bounds import Bounds

__all__ = ["Client", "Peer", "Peers", "Spent"]

ROOM = 8  # a search for the largest makes room for this part of the bound, so that it is not made for each byte


class Client(Protocol):
    """A connection, as the service sees it.

    :param held: bytes of requests not yet complete and of answers not yet taken.
    """

    held: int

    def look(self, now: float) -> None:
        """Do what is due at a time of the monotonic clock."""

    def finish(self) -> None:
        """Answer what has come, then close."""

    def abort(self) -> None:
        """Close at once."""

    def drop(self, reason: str, words: bytes = b"") -> None:
        """Close at once, for a reason that the log says, after some words to the client."""


class Spent:
    """An amount of which as much as the bound is forgotten each minute.

    :param bound: above which nothing more may be spent.
    """

    __slots__ = ("_amount", "_at", "bound")

    def __init__(self, bound: float) -> None:
        self.bound, self._amount, self._at = bound, 0.0, monotonic()

    @property
    def amount(self) -> float:
        """What was spent and is not forgotten."""
        now = monotonic()
        self._amount = max(0.0, self._amount - (now - self._at) * self.bound / 60)
        self._at = now
        return self._amount

    def add(self, amount: float) -> None:
        """Spend more."""
        self._amount = self.amount + amount

    @property
    def wait(self) -> float:
        """Seconds until something may be spent again; 0 where it may be now."""
        return max(0.0, self.amount - self.bound) * 60 / self.bound


class Peer:
    """A user of the service's host, or another host.

    :param name: see `identity.peer_of`.
    :param bounds: the service's bounds.
    """

    __slots__ = ("bytes", "connections", "held", "name", "seconds")

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name = name
        self.connections: dict[Client, None] = {}  # the longest silent one first
        self.held = 0  # bytes of requests not yet complete and of answers not yet taken
        self.seconds, self.bytes = Spent(bounds.peer_seconds), Spent(bounds.peer_bytes)


class Peers:
    """The peers that have clients, or had some and have spent what is not yet forgotten.

    :param bounds: the service's bounds.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._peers: dict[str, Peer] = {}
        self.held = 0  # of all together

    def __len__(self) -> int:
        return len(self._peers)

    def named(self, name: str) -> Peer:
        """The peer of a name, a new one where it is not known."""
        return self._peers.setdefault(name, Peer(name, self.bounds))

    def hold(self, peer: Peer, count: int) -> None:
        """Count bytes that one of a peer's clients makes the service hold, or no longer makes it hold if negative."""
        peer.held += count
        self.held += count

    def forget(self) -> None:
        """Let go the peers that have no clients and owe nothing."""
        for peer in list(self._peers.values()):
            if not peer.connections and not peer.seconds.amount and not peer.bytes.amount:
                del self._peers[peer.name]

    def make_room(self) -> None:
        """Where all hold too much drop the largest clients of the largest peers, until there is room again."""
        bound = self.bounds.held_bytes
        while self.held > bound:
            self._shrink(max(self._peers.values(), key=lambda peer: peer.held), bound - bound // ROOM)

    def _shrink(self, peer: Peer, enough: int) -> None:
        """Drop the largest clients of a peer until it holds half of what it held, or all together little enough."""
        half = peer.held // 2
        for connection in sorted(peer.connections, key=lambda one: one.held, reverse=True):
            if peer.held <= half or self.held <= enough:
                return
            connection.drop("requests and answers of all clients take too much memory, and this peer's most")

    def make_place(self) -> None:
        """Close the longest silent client of the peer that has most."""
        peer = max(self._peers.values(), key=lambda peer: len(peer.connections))
        words = f"error: expecting at most {self.bounds.clients:,} clients, got one more\n"
        next(iter(peer.connections)).drop("there were too many clients, and this peer had most", words.encode())
