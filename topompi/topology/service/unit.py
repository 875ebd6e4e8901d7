"""The systemd unit of the topology service: what it needs for its addresses and for its command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...daemon.unit import Unit, folder_of_socket
from ..client import Address
from .bounds import Bounds

__all__ = ["OWN_FILES", "unit_text"]

OWN_FILES = 64  # that are no clients
SPARE_SECONDS = 5  # between the end of draining and a kill

_OF_NOBODY = ("DynamicUser=yes", "PrivateDevices=yes")  # and no PrivateUsers, in which all who ask would be one user
# The command looks at the fabric through a device of InfiniBand's.
_OF_ROOT = ("User=root", "DevicePolicy=closed", "DeviceAllow=char-infiniband_mad rw")
# By AF_NETLINK the kernel says which user of this host asks.
_LOOPBACK = (
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "IPAddressDeny=any",
    "IPAddressAllow=localhost",
)


def unit_text(
    words: Sequence[str], addresses: Sequence[Address], is_wide: bool, bounds: Bounds, written: Path | None = None
) -> str:
    """The unit, to be kept as ``/etc/systemd/system/topompi-topology.service``.

    :param words: of the command that serves, with whole paths.
    :param addresses: where it listens.
    :param is_wide: whether other hosts reach one of them.
    :param bounds: the service's bounds.
    :param written: folder that the administrator's command writes to; None where there is no command.
    """
    own = ["SystemCallFilter=setpriority"]  # its workers step behind it
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
