"""The systemd unit of the shutter, with only the rights that stopping and measuring other users' processes need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..daemon.unit import Unit

__all__ = ["unit_text"]

_FILES = 1 << 20  # a process of a job needs several descriptors
_OWN = """\
# It signals processes of users (CAP_KILL), counts their instructions (CAP_PERFMON), and reads the counters in folders
# that are theirs alone (CAP_DAC_READ_SEARCH). It never becomes another user.
CapabilityBoundingSet=CAP_KILL CAP_PERFMON CAP_DAC_READ_SEARCH
# It sees the processes of users, and freezes their control groups.
ProtectProc=default
ProtectControlGroups=no
# It moves to a core that no job uses, opens many files, and opens counters of the kernel.
SystemCallFilter=sched_setaffinity setrlimit prlimit64 perf_event_open pidfd_send_signal
# Python's ctypes, through which the counters are opened, may need memory that is both written and executed.
MemoryDenyWriteExecute=no
# It speaks to its watchdog, to systemd and to the sockets of Slurm's steps on this host.
RestrictAddressFamilies=AF_UNIX
PrivateNetwork=yes
# It wakes on a core that a job uses, has no answer to a reload, and shows no life to systemd: its watchdog does that.
Nice=-20
ExecReload=
WatchdogSec=0
# The watchdog ignores SIGTERM while it resumes what is stopped; any other mode would end it at once or never.
KillMode=control-group
# The group of the log's folder may read the log."""


def unit_text(words: Sequence[str], log: Path) -> str:
    """Write the text of the unit, to be stored as ``/etc/systemd/system/topompi-shutter.service``.

    :param words: command line of the daemon, with absolute paths.
    :param log: path of the log, whose folder is the only one that the daemon may write.
    """
    folder = log.absolute().parent
    of_logs = folder.parent == Path("/var/log")
    place = f"LogsDirectory={folder.name}" if of_logs else f"ReadWritePaths={folder}"
    return Unit(
        "Shutter: what jobs that share this node lose to each other",
        words,
        (_OWN, "UMask=0027", place),
        files=_FILES,
    ).text()
