"""The topology service that routes came from, and the check whether its routes have changed since."""

from __future__ import annotations

from dataclasses import dataclass

from .client import Address, ask

__all__ = ["Served"]


@dataclass(frozen=True)
class Served:
    """A topology service and the version of the routes that it returned.

    :param server: address of the service, ``tcp://HOST:PORT`` or ``unix:PATH``.
    :param digest: digest of the routes; equal routes have equal digests, also after a restart of the service.
    """

    server: str
    digest: str

    def is_current(self) -> bool:
        """Ask the service whether it still has the same routes. Cost: one short round trip.

        :raises ServiceError: if the service does not answer in time; the routes read earlier remain usable.
        """
        return ask(Address.parse(self.server), {"request": "generation"}, short=True).get("digest") == self.digest
