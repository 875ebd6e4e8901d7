"""Where a view came from a topology service: whether that still answers from the same routes."""

from __future__ import annotations

from dataclasses import dataclass

from .client import Address, ask

__all__ = ["Served"]


@dataclass(frozen=True)
class Served:
    """A service, and the routes that it answered from.

    :param server: its address, ``tcp://HOST:PORT`` or ``unix:PATH``.
    :param digest: of its routes: the same after a restart if they are, another one where they changed.
    """

    server: str
    digest: str

    def is_current(self) -> bool:
        """Whether the service still has these routes: one round trip, in which it looks up one word.

        :raises ServiceError: where it does not answer in time; what was read is then as good as it was.
        """
        return ask(Address.parse(self.server), {"request": "generation"}, short=True).get("digest") == self.digest
