"""The processes of a Slurm job on this node, as root's own files and sockets tell them: users can set any name.

Slurm 22.05 and later can put each job into a control group of its own. Without, each step's daemon (``slurmstepd``)
listens at a socket in SlurmdSpoolDir, a folder of root's, and the kernel tells who listens there.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterator

from ...guard import intrusion
from .controlgroups import ControlGroup, is_group
from .errors import ShutterError
from .targets import Groups, ProcessTree, start_of_process

__all__ = ["PLACES", "slurm_job"]

PLACES = ("/sys/fs/cgroup/system.slice/slurmstepd.scope", "/var/spool/slurmd", "/var/spool/slurm/slurmd")
_PATIENCE = struct.pack("@ll", 1, 0)  # struct timeval: seconds and microseconds that a full queue is awaited
_PEER = struct.Struct("iII")  # struct ucred: pid, user, group


def slurm_job(number: int, place: str) -> ControlGroup | SlurmSteps:
    """Return the processes of a Slurm job.

    :param number: number of the job.
    :param place: folder of Slurm's control groups on this node, or SlurmdSpoolDir.
    :raises ShutterError: if the folder is neither, or if anybody but root can add to it.
    """
    if is_group(place):
        return ControlGroup(f"{place}/job_{number}", waits=True)
    if not os.path.isdir(place):
        raise ShutterError(f"expecting Slurm's control groups or SlurmdSpoolDir, got {place}: name it by --slurm")
    if who := intrusion(place):
        raise ShutterError(f"expecting a SlurmdSpoolDir that root alone can write, got {who}")
    return SlurmSteps(number, place)


class SlurmSteps(ProcessTree):
    """The descendants of the daemons of a Slurm job's steps.

    :param number: number of the job.
    :param folder: SlurmdSpoolDir.
    """

    def __init__(self, number: int, folder: str) -> None:
        self.roots, self._members, self._folder = [], set(), folder
        self._name = re.compile(rf"[^/]*_{number}\.[0-9]{{1,10}}(\.[0-9]{{1,10}})?")
        self._known: dict[tuple[str, int], int] = {}  # pid of a step's daemon, by its socket's name and inode

    def pids(self, groups: Groups) -> Iterator[int]:
        """Yield the numbers of the processes, without ``slurmstepd`` itself.

        :param groups: processes of each parent of the node.
        :raises OSError: if the folder or a socket cannot be read.
        """
        self.roots = []
        for entry in os.scandir(self._folder):
            if self._name.fullmatch(entry.name):
                pid = self._daemon(entry)
                start = start_of_process(pid) if pid else None
                if start is not None:
                    self.roots.append(pid)
                    self._members.add((pid, start))
        return (pid for pid in super().pids(groups) if pid not in self.roots)

    def _daemon(self, entry: os.DirEntry[str]) -> int:
        """The pid of root's process that listens at a socket; 0 if none does."""
        key = (entry.name, entry.inode())
        if key not in self._known:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
                asked.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _PATIENCE)
                try:
                    asked.connect(entry.path)
                except (ConnectionRefusedError, FileNotFoundError):
                    return 0  # a step that died left its socket
                except BlockingIOError:
                    return 0  # it answers nobody now, and is asked again at the next look
                pid, user, _ = _PEER.unpack(asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if user != 0:
                raise OSError(f"expecting a socket of root's, got one of user {user} at {entry.path}")
            self._known[key] = pid
        return self._known[key]
