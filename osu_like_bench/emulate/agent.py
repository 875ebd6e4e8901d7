"""The launch agent, which MPI launchers call in place of ssh to start a process on an emulated host."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .records import NetworkRecord, put

__all__ = ["HEAD", "agent_path", "enter", "write_agent"]

HEAD = "topompi-head"  # name of the machine from which jobs start; no host has this name

# A host has its own network, name, System V memory, hosts file, and /dev/shm. /dev/shm vanishes with the job's
# processes, and with it the files that killed launchers leave in it. ``ip netns exec`` cannot replace this script,
# because it lacks most of these, and mounts another /sys, in which hwloc finds no processors.
_ENTER = """#!/bin/sh
# Run COMMAND... on the emulated host NAME: enter NAME COMMAND...
set -e
name=$1
shift
if [ "$name" = {head} ]; then net={switchless}; else net={prefix}$name; fi
if [ ! -e "/run/netns/$net" ]; then echo "emulate: no host $name" >&2; exit 255; fi
exec nsenter --net="/run/netns/$net" unshare --uts --mount --ipc sh -c '
    hostname "$1" && mount -t tmpfs -o size=75% tmpfs /dev/shm && mount --bind {names} /etc/hosts || exit 255
    export TMPDIR=/dev/shm/tmp && mkdir "$TMPDIR" || exit 255
    shift
    exec "$@"
' sh "$name" "$@"
"""

_AGENT = """#!/bin/sh
# As ssh: agent [OPTION...] NAME COMMAND...; the words of the command are joined and read by a shell.
while [ "${{1#-}}" != "$1" ]; do shift; done
name=$1
shift
exec {enter} "$name" sh -c "$*"
"""


def write_agent(state: NetworkRecord, addresses: Sequence[str]) -> None:
    """Write the launch agent, the script that it calls, and the hosts file into the network's directory.

    The script runs a command on an emulated host.

    :param state: record of the network.
    :param addresses: address of each host on the control network, over which jobs are started.
    """
    names = state.path / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{at} {host}" for at, host in zip(addresses, state.hosts, strict=True))]
    put(names, "\n".join(lines) + "\n")
    quoted = {
        "head": HEAD,
        "switchless": shlex.quote(state.head),
        "prefix": shlex.quote(state.namespace("")),
        "names": shlex.quote(str(names)),
    }
    put(_enter_path(state), _ENTER.format(**quoted), 0o755)
    put(agent_path(state), _AGENT.format(enter=shlex.quote(str(_enter_path(state)))), 0o755)


def agent_path(state: NetworkRecord) -> Path:
    """Return the path of the network's launch agent."""
    return state.path / "agent"


def enter(state: NetworkRecord, host: str, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command on an emulated host, or on the machine from which jobs start (head).

    :param state: record of the network.
    :param host: name of the host, or ``HEAD``.
    :param command: program and arguments.
    """
    return [str(_enter_path(state)), host, *command]


def _enter_path(state: NetworkRecord) -> Path:
    return state.path / "enter"
