"""A systemd unit for the service that takes away from it what it does not need; and word to systemd how it is."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..asking import Address
from .bounds import Bounds

__all__ = ["OWN_FILES", "notify", "unit_text"]

OWN_FILES = 64  # that are no clients
SPARE_SECONDS = 5  # between the end of draining and a kill

_UNIT = """\
[Unit]
Description=Topology service: what lies between the hosts of a job
After=network.target

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
TimeoutStopSec={stop:g}
WatchdogSec=30
LimitNOFILE={files}
MemoryMax=4G
Environment=PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
{own}

# It reads files and answers questions.
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
# Its workers step behind it.
SystemCallFilter=setpriority
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""

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
    own = [*(_OF_NOBODY if written is None else _OF_ROOT)]
    own += [] if written is None else [f"ReadWritePaths={written}"]
    own += [_folder(Path(address.path).parent) for address in addresses if address.path]
    if is_wide:
        own += [_LOOPBACK[0], "# To shut others out: IPAddressDeny=any and IPAddressAllow= with the cluster's network"]
    elif any(address.host for address in addresses):
        own += _LOOPBACK
    else:
        own += ["RestrictAddressFamilies=AF_UNIX", "PrivateNetwork=yes"]
    return _UNIT.format(
        command=" ".join(map(_quoted, words)),
        own="\n".join(own),
        stop=bounds.drain_seconds + SPARE_SECONDS,
        files=bounds.clients + OWN_FILES,
    )


def _folder(path: Path) -> str:
    """What lets the service make its socket: systemd makes folders below ``/run``, others have to be there."""
    if path.parent == Path("/run"):
        return f"RuntimeDirectory={path.name}"
    return f"ReadWritePaths={path}"


def _quoted(word: str) -> str:
    """A word as systemd reads it, which has its own meanings of ``%`` and ``$``."""
    text = re.sub(r'(["\\])', r"\\\1", word).replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if re.search(r"[\s\"'\\;]", word) or not word else text


def notify(state: str) -> None:
    """Tell systemd a state, such as ``READY=1``; nothing where it did not start this process."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.sendto(state.encode(), f"\0{path[1:]}" if path.startswith("@") else path)
