"""Real processes for the tests of the shutter, each in a process group of its own, which the tests end."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.support import ROOT
from topompi.machine.shutter.published import path_of

BUSY = "while True: pass"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

# The first line of a program whose forks end with it, as it ends with the tests.
FORKS_END = "import ctypes, os; os.register_at_fork(after_in_child=lambda: ctypes.CDLL(None).prctl(1, 9))\n"
_LIBRARY = ctypes.CDLL(None)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let the kernel send a signal to this process when its parent ends, so that killed tests leave nothing behind."""
    _LIBRARY.prctl(1, ctypes.c_ulong(number), 0, 0, 0)  # PR_SET_PDEATHSIG


@contextmanager
def program(text: str, *words: str, **settings) -> Iterator[subprocess.Popen]:
    """Run a Python program in a process group of its own; at the end all of the group is killed."""
    settings |= {"start_new_session": True, "env": ENVIRONMENT, "preexec_fn": end_with_parent}
    made = subprocess.Popen([sys.executable, "-c", text, *words], **settings)
    try:
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        made.wait(10)
        with suppress(FileNotFoundError):  # a killed program leaves its counter
            os.unlink(path_of(os.geteuid(), made.pid))
        for pipe in (made.stdin, made.stdout, made.stderr):
            if pipe:
                pipe.close()


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0].decode()


def eventually(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until a condition holds, and fail if it does not within a time."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "the condition did not come true in time"
        time.sleep(0.002)
