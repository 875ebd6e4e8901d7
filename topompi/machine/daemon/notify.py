"""Messages to systemd about a daemon's state."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["notify"]


def notify(state: str) -> None:
    """Send a state to systemd, for example ``READY=1``; nothing is sent if systemd did not start this process.

    :param state: assignment in the form of sd_notify(3).
    """
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.sendto(state.encode(), f"\0{path[1:]}" if path.startswith("@") else path)
