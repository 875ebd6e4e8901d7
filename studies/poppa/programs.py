"""The kernels of ``kernels.c``: compiled at first use, and run each on a core of its own."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import topompi.machine.shutter
from topompi.errors import BenchmarkError
from topompi.machine.shutter.published import path_of, read_counter, start_of

__all__ = ["KERNELS", "Kernel", "compiled", "go_first", "started"]

KERNELS = (
    "null", "triad", "stencil", "random", "sparse", "blocked", "phases-1", "phases-3", "phases-10", "barriers",
)  # fmt: skip
SOURCE = Path(__file__).with_name("kernels.c")
HEADERS = Path(topompi.machine.shutter.__file__).parent
DEATH = 1  # PR_SET_PDEATHSIG
CPU_CLOCK = 2  # of a process, in its clock's number: the time on a core, up to the nanosecond
READY = 10.0  # seconds in which a kernel has to publish its counter


def compiled(folder: Path | None = None) -> Path:
    """Compile the kernels, unless this version of them is there, and return the program's path.

    :param folder: folder for the program; by default that of temporary files.
    :raises BenchmarkError: if there is no gcc, or it refuses the source.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        raise BenchmarkError("expecting gcc to compile the kernels, got none")
    version = sha256(SOURCE.read_bytes() + (HEADERS / "topompi_progress.h").read_bytes()).hexdigest()[:12]
    made = (folder or Path(tempfile.gettempdir())) / f"topompi-kernels-{os.geteuid()}-{version}"
    if made.exists() and made.stat().st_uid == os.geteuid():
        return made
    partial = made.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-Wall", "-I", str(HEADERS), "-o", str(partial), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise BenchmarkError(f"expecting gcc to compile {SOURCE}, got {done.stderr.strip()[-300:]}")
    partial.rename(made)
    return made


class Kernel:
    """A kernel that runs without end on one core, in a process group of its own.

    :param program: path of the compiled kernels.
    :param name: name of the kernel.
    :param core: number of the core.
    """

    def __init__(self, program: Path, name: str, core: int) -> None:
        self.name, self.core = name, core
        self._process = subprocess.Popen(
            [program, name, "0"], start_new_session=True, preexec_fn=lambda: _tie_to_parent(core)
        )
        self.pid = self._process.pid
        self._fd = self._counter()

    def _counter(self) -> int:
        limit = time.monotonic() + READY
        while time.monotonic() < limit and self._process.poll() is None:
            try:
                self._start = start_of(Path(f"/proc/{self.pid}/stat").read_bytes())
                fd = os.open(path_of(os.geteuid(), self.pid), os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                time.sleep(0.01)
                continue
            if read_counter(fd, self.pid, self._start) is not None:
                return fd
            os.close(fd)
        self._process.kill()
        raise BenchmarkError(f"{self.name}: expecting a counter within {READY:g} s, got none")

    def count(self) -> int:
        """Return the steps done so far.

        :raises BenchmarkError: if the kernel has ended.
        """
        value = read_counter(self._fd, self.pid, self._start)
        if value is None or self._process.poll() is not None:
            raise BenchmarkError(f"{self.name}: expecting it to run, got exit code {self._process.poll()}")
        return value

    def cpu(self) -> float:
        """Return the seconds that the kernel has spent on its core, not those in which something else ran there."""
        return time.clock_gettime(~self.pid << 3 | CPU_CLOCK)

    def stop(self) -> None:
        """Let the kernel stand still."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go(self) -> None:
        """Let the kernel go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End the kernel."""
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._fd)
        Path(path_of(os.geteuid(), self.pid)).unlink(missing_ok=True)


@contextmanager
def started(names: tuple[str, ...], cores: tuple[int, ...], program: Path | None = None) -> Iterator[list[Kernel]]:
    """Run kernels, one per core, and end them on leaving.

    :param names: names of the kernels.
    :param cores: core of each.
    :param program: path of the compiled kernels.
    """
    program = program or compiled()
    with ExitStack() as stack:
        made = []
        for name, core in zip(names, cores, strict=True):
            made.append(Kernel(program, name, core))
            stack.callback(made[-1].close)
        yield made


def _tie_to_parent(core: int) -> None:
    ctypes.CDLL(None).prctl(DEATH, signal.SIGKILL)
    os.sched_setaffinity(0, {core})
    go_first()


def go_first() -> None:
    """As root, run before other processes of the machine; a session has a priority of its own beside the process's."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("-20")
