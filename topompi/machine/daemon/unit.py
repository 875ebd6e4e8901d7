"""A systemd unit that starts a daemon with only the rights that it needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Unit", "folder_of_socket", "own_command", "quoted"]

_TEXT = """\
[Unit]
Description={description}
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
MemoryMax={memory}
Environment=PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1

# What no daemon of topompi needs is taken away; the lines at the end give some of it back.
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
SystemCallErrorNumber=EPERM

# What it needs besides.
{own}

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Unit:
    """The systemd service file of one daemon.

    :param description: description for ``systemctl status``.
    :param words: command that starts the daemon, with absolute paths.
    :param own: lines added to the section ``[Service]``; by systemd's rules they override the lines that all daemons
        share.
    :param stop_seconds: seconds between systemd's request to stop the daemon and its kill.
    :param files: number of files that the daemon may have open at once.
    :param memory: memory limit in systemd's notation, for example ``4G``.
    """

    description: str
    words: Sequence[str]
    own: Sequence[str] = ()
    stop_seconds: float = 10.0
    files: int = 1024
    memory: str = "4G"

    def text(self) -> str:
        """Return the text of the service file, which belongs below ``/etc/systemd/system``."""
        return _TEXT.format(
            description=self.description,
            command=" ".join(map(quoted, self.words)),
            own="\n".join(self.own),
            stop=self.stop_seconds,
            files=self.files,
            memory=self.memory,
        )


def folder_of_socket(path: Path) -> str:
    """Return the line of a service file that lets a daemon make a socket in a folder.

    :param path: the folder; systemd makes it if it is directly below ``/run``, else it must exist.
    """
    if path.parent == Path("/run"):
        return f"RuntimeDirectory={path.name}"
    return f"ReadWritePaths={path}"


def quoted(word: str) -> str:
    """Quote a word for systemd, which gives ``%`` and ``$`` meanings of its own."""
    text = re.sub(r'(["\\])', r"\\\1", word).replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if re.search(r"[\s\"'\\;]", word) or not word else text


def own_command(words: Sequence[str], verb: str, *, without: str = "") -> list[str]:
    """Return a command line of topompi with absolute paths, so that systemd can start it from any directory.

    :param words: arguments of topompi, for example those of this process, without the program's name.
    :param verb: the subcommand among the arguments; arguments after it that name existing files become absolute paths.
    :param without: option that is left out of the result; empty to leave none out.
    """
    begin = words.index(verb) + 1
    found = [sys.executable, "-P", "-m", "topompi", *words[:begin]]
    for word in words[begin:]:
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if not without or word != without:
            found.append(name + equals + (str(Path(value).absolute()) if Path(value).exists() and value else value))
    return found
