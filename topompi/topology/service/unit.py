"""The systemd unit of the topology service, with only the rights that its addresses and its command need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...machine.daemon.unit import Unit, folder_of_socket
from ..client import Address
from .bounds import Bounds

__all__ = ["OWN_FILES", "unit_text"]

OWN_FILES = 64  # number of files that the service may have open besides its clients' sockets
SPARE_SECONDS = 5  # seconds between the end of answering open requests and a kill

_OF_NOBODY = ("DynamicUser=yes", "PrivateDevices=yes")  # no PrivateUsers, which would make all clients one user
# The service runs as root with access to InfiniBand's management devices, because the administrator's command uses them
# to query the fabric.
_OF_ROOT = ("User=root", "DevicePolicy=closed", "DeviceAllow=char-infiniband_mad rw")
# The kernel tells the user of a local client through AF_NETLINK.
_LOOPBACK = (
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "IPAddressDeny=any",
    "IPAddressAllow=localhost",
)


def unit_text(
    words: Sequence[str], addresses: Sequence[Address], is_wide: bool, bounds: Bounds, written: Path | None = None
) -> str:
    """Write the text of the unit, to be stored as ``/etc/systemd/system/topompi-topology.service``.

    :param words: command line of the service, with absolute paths.
    :param addresses: addresses at which it listens.
    :param is_wide: whether other hosts can reach one of the addresses.
    :param bounds: the service's limits.
    :param written: folder that the administrator's command writes to; None if there is no command.
    """
    own = ["SystemCallFilter=setpriority"]  # for the workers' lower priority
    own += [*(_OF_NOBODY if written is None else _OF_ROOT)]
    own += [] if written is None else [f"ReadWritePaths={written}"]
    own += [folder_of_socket(Path(address.path).parent) for address in addresses if address.path]
    if is_wide:
        own += [_LOOPBACK[0], "# To shut others out: IPAddressDeny=any and IPAddressAllow= with the cluster's network"]
    elif any(address.host for address in addresses):
        own += _LOOPBACK
    else:
        own += ["RestrictAddressFamilies=AF_UNIX", "PrivateNetwork=yes"]
    return Unit(
        "Topology service: what lies between the hosts of a job",
        words,
        own,
        stop_seconds=bounds.drain_seconds + SPARE_SECONDS,
        files=bounds.clients + OWN_FILES,
    ).text()
