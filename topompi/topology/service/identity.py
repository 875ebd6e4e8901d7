"""Identification of a connection's other end: a user of this host, known from the kernel, or another host."""

from __future__ import annotations

import ipaddress
import socket
import struct
from contextlib import suppress

__all__ = ["peer_of"]

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1  # Linux's NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY and NLM_F_REQUEST
_HEAD = struct.Struct("=IHHII")  # struct nlmsghdr
_QUESTION = struct.Struct("=BBBxI2s2s16s16sI8s")  # struct inet_diag_req_v2
_ANSWER = struct.Struct("=4x48x12xII")  # struct inet_diag_msg: the socket's user and inode number
_NO_COOKIE = b"\xff" * 8
_SECONDS = 1.0  # seconds; limits the wait for the kernel, which answers at once

_User = struct.Struct("=iII")  # struct ucred


def peer_of(connection: socket.socket) -> str:
    """Name the peer that a client belongs to: ``user 1000`` for a user of this host, else the address of its host.

    If the kernel does not reveal the owner of a TCP socket of this host, all users who connect through the loopback are
    one peer.

    Cost: some ten microseconds.
    """
    try:
        if connection.family == socket.AF_UNIX:
            ucred = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _User.size)
            return f"user {_User.unpack(ucred)[1]}"
        theirs, ours = connection.getpeername(), connection.getsockname()
    except OSError:
        return "gone"
    user = None
    with suppress(OSError, struct.error):
        user = _owner(connection.family, theirs, ours)
    if user is not None:
        return user
    return "loopback" if ipaddress.ip_address(theirs[0].partition("%")[0]).is_loopback else str(theirs[0])


def _owner(family: int, theirs: tuple[str, int], ours: tuple[str, int]) -> str | None:
    """Name the user who owns the connection's other end if that is a socket of this host; else None.

    :param family: address family of the connection.
    :param theirs: IP address and port of the other end.
    :param ours: IP address and port of our end.
    """
    places = [socket.inet_pton(family, end[0].partition("%")[0]).ljust(16, b"\0") for end in (theirs, ours)]
    ports = [end[1].to_bytes(2, "big") for end in (theirs, ours)]
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF, *ports, *places, 0, _NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_HEAD.pack(_HEAD.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
        answer = kernel.recv(4096)
    if _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    user, number = _ANSWER.unpack_from(answer, _HEAD.size)
    return f"user {user}" if number else "gone"  # inode number 0: a closed socket has no owner any more
