"""The watchdog: a process that resumes what the daemon has stopped, if the daemon dies or does not resume in time."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterable

from .controlgroups import hold_of
from .errors import ShutterError
from .holds import Hold

__all__ = ["Watchdog"]

_MOST = 200  # numbers per message, which is read in one piece of 4096 bytes


class Watchdog:
    """A child process with descriptors of its own for everything that the daemon may stop.

    The daemon announces a stop before its first signal. The kernel keeps the order of the messages and delivers them
    also after the sender's death, so the watchdog knows every stop when it reads the end of the socket.
    It ignores the signals that end daemons, and ends when the socket closes. Nothing is stopped before it has left the
    daemon's session.

    :param patience: seconds after the announcement of a stop at which the watchdog resumes everything, because the
        daemon itself was stopped, or waits for a disk or a core.
    """

    def __init__(self, patience: float = 1.0) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                _detach(theirs.fileno())
                theirs.send(b"1")
                _watch(theirs, patience)
            finally:
                os._exit(0)
        theirs.close()
        if not ours.recv(1):  # a signal to the daemon's process group must not end the watchdog, too
            os.waitpid(self.pid, 0)
            raise ShutterError(f"expecting a watchdog (process {self.pid}), but it has ended")
        self._socket = ours
        self._numbers: dict[Hold, int] = {}
        self._next = 0

    def announce(self, holds: Iterable[Hold]) -> None:
        """Tell the watchdog that these holds are going to be stopped.

        :param holds: processes and control groups.
        :raises ShutterError: if the watchdog has ended; then nothing may be stopped.
        """
        listed = list(holds)
        for hold in listed:
            if hold not in self._numbers:
                self._numbers[hold] = self._next
                self._next += 1
                self._send(f"hold {self._numbers[hold]} {hold.kind}", hold.fd)
        numbers = [str(self._numbers[hold]) for hold in listed]
        for first in range(0, len(numbers), _MOST):
            self._send(f"stop {' '.join(numbers[first : first + _MOST])}")

    def resumed(self) -> None:
        """Tell the watchdog that everything runs again."""
        self._send("resumed")

    def forget(self, hold: Hold) -> None:
        """Let the watchdog close its descriptor.

        :param hold: a hold that will not be stopped again.
        """
        if hold in self._numbers:
            self._send(f"forget {self._numbers.pop(hold)}")

    def close(self) -> None:
        """End the watchdog, which resumes what is still stopped, and wait for its end."""
        self._socket.close()
        os.waitpid(self.pid, 0)

    def _send(self, words: str, fd: int | None = None) -> None:
        try:
            socket.send_fds(self._socket, [words.encode()], [] if fd is None else [fd])
        except OSError as error:
            raise ShutterError(f"expecting a watchdog (process {self.pid}), but it has ended: {error}") from None


def _detach(kept: int) -> None:
    """Leave the daemon's session, ignore the signals that end daemons, and close all descriptors but one and 0 to 2.

    :param kept: descriptor of the watchdog's socket.
    """
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    quiet = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # a pipe that a user reads from the daemon ends with the daemon
        os.dup2(quiet, fd)


def _watch(source: socket.socket, patience: float) -> None:
    """Follow the daemon's messages until its end, and resume what it has stopped then or for too long.

    :param source: the watchdog's end of the socket.
    :param patience: seconds that the daemon has to resume what it stops.
    """
    holds: dict[int, Hold] = {}
    stopped: set[int] = set()
    late: set[int] = set()  # resumed after ``patience``; the daemon may stop them still, if it gets a core so late
    while True:
        source.settimeout(patience if stopped else None)
        try:
            message, fds, _, _ = socket.recv_fds(source, 4096, 1)
        except TimeoutError:
            for number in stopped:
                holds[number].resume()
            late |= stopped
            stopped.clear()
            continue
        if not message:
            break
        verb, *words = message.decode().split()
        if verb == "hold":
            holds[int(words[0])] = hold_of(words[1], fds[0])
        elif verb == "stop":
            stopped.update(map(int, words))
        elif verb == "resumed":
            stopped.clear()
            late.clear()
        elif verb == "forget":
            stopped.discard(int(words[0]))
            late.discard(int(words[0]))
            holds.pop(int(words[0])).close()
    for number in stopped | late:
        holds[number].resume()
