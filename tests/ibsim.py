"""A simulated InfiniBand fabric: ibsim serves it, OpenSM routes it, and the diagnostic tools read it.

The tools are Debian's ibsim-utils, opensm and infiniband-diags. They need no root, because ibsim uses sockets of its
own, and the library libumad2sim, loaded before each tool, replaces the kernel's interface.
"""

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["Simulation", "library", "missing_tools", "serve", "tool_versions"]

PACKAGES = ("ibsim-utils", "opensm", "infiniband-diags")
TOOLS = ("ibsim", "opensm", "ibnetdiscover", "ibtracert", "ibroute", "dump_fts")
LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
# Limits on nodes, switches, ports and LIDs; those that ibsim has by itself are too low for large fabrics.
LIMITS = ("-N", "8192", "-S", "2048", "-P", "65536", "-L", "49151")
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_SWITCH_CROSSED = re.compile(r"-> switch port \{(0x[0-9a-f]+)\}")


def missing_tools() -> str:
    """What is missing to simulate a fabric, in words; empty if nothing is."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SYSTEM_PATH) is None]
    missing += [] if library() else ["libumad2sim.so"]
    return f"{', '.join(missing)} not found (Debian packages {', '.join(PACKAGES)})" if missing else ""


def tool_versions() -> dict[str, str]:
    """Version of each Debian package used; "unknown" where the package manager does not know it."""
    versions = {}
    for package in PACKAGES:
        command = ["dpkg-query", "-W", "-f", "${Version}", package]
        with contextlib.suppress(FileNotFoundError):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            versions[package] = done.stdout.strip()
    return {package: versions.get(package) or "unknown" for package in PACKAGES}


@functools.cache  # the search walks through all libraries
def library() -> str | None:
    """What stands in for the kernel's interface, loaded before a tool."""
    found = (path for root in LIBRARIES for path in sorted(Path(root).glob("**/umad2sim/libumad2sim.so")))
    return next((str(path) for path in found), None)


@dataclass(frozen=True)
class Simulation:
    """A fabric being served.

    :param directory: where the tools put their files; removed with the simulation.
    """

    directory: Path
    _environment: dict[str, str]
    _console: IO[bytes] | None = None

    @property
    def socket(self) -> str:
        """By what the tools find it: ``IBSIM_SOCKNAME``."""
        return self._environment["IBSIM_SOCKNAME"]

    def unlink(self, node: str, port: int) -> None:
        """Take away the cable at a port of a node (``S-`` or ``H-`` and 16 digits), as somebody who pulls it."""
        assert self._console is not None
        self._console.write(f'unlink "{node}"[{port}]\n'.encode())
        self._console.flush()

    def run(self, *command: str, timeout: float = 60) -> str:
        """Standard output of a tool run against the fabric; if it fails, the error says what it printed."""
        environment = {**self._environment, "LD_PRELOAD": library() or ""}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            cwd=self.directory,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def route(self, *options: str, timeout: float = 120) -> Path:
        """Let OpenSM route the fabric once; the path of its table dump (opensm-lfts.dump)."""
        fixed = (
            "-o",
            "-D",
            "0x43",
            "--dump_files_dir",
            str(self.directory),
            "-f",
            str(self.directory / "sm.log"),
        )
        self.run("opensm", *fixed, *options, timeout=timeout)
        return self.directory / "opensm-lfts.dump"

    @contextlib.contextmanager
    def managed(self, *options: str, timeout: float = 60) -> Iterator[Path]:
        """Let OpenSM manage the fabric for as long as the context lasts; the path of its log.

        Its standard output is in the file sm.out beside it. The options have to be in a file (-F) with the line
        ``force_log_flush TRUE``, because the log tells when the fabric is ready.
        """
        log, output = self.directory / "sm.log", self.directory / "sm.out"
        words = ["opensm", "-D", "0x43", "--dump_files_dir", str(self.directory), "-f", str(log), *options]
        environment = {**self._environment, "LD_PRELOAD": library() or ""}
        log.unlink(missing_ok=True)
        with (
            output.open("w") as stream,
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self.directory,
            ) as process,
        ):
            try:
                _wait_for(process, log, "SUBNET UP", timeout)
                yield log
            finally:
                process.kill()

    def discover(self) -> Path:
        """Path of what ibnetdiscover says about the fabric now."""
        path = self.directory / "discovered.ibnetdiscover"
        path.write_text(self.run("ibnetdiscover"))
        return path

    def trace(self, source: int, destination: int) -> list[str]:
        """GUIDs of the switches that ibtracert crosses between two LIDs, in order."""
        return _SWITCH_CROSSED.findall(self.run("ibtracert", str(source), str(destination), timeout=20))


@contextlib.contextmanager
def serve(report: str, timeout: float = 60) -> Iterator[Simulation]:
    """Serve a fabric, given as an ibnetdiscover report, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="ibsim-") as name:
        directory = Path(name)
        (directory / "net").write_text(report)
        # Sockets are named after this, so that simulations can run side by side.
        environment = {
            **os.environ,
            "PATH": SYSTEM_PATH,
            "IBSIM_SOCKNAME": f"t{uuid.uuid4().hex[:12]}",
            "OSM_TMP_DIR": name,
            "OSM_CACHE_DIR": name,
        }
        log = directory / "ibsim.log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                ["ibsim", "-s", *LIMITS, "net"],
                stdin=subprocess.PIPE,  # its console: ibsim ends when this ends
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory,
            ) as process,
        ):
            try:
                _wait_for(process, log, "simulator ready", timeout)
                yield Simulation(directory, environment, process.stdin)
            finally:
                process.kill()


def _wait_for(process: subprocess.Popen[bytes], log: Path, words: str, timeout: float) -> None:
    deadline, name = (
        time.monotonic() + timeout,
        str(process.args[0] if isinstance(process.args, list) else process.args),
    )
    while words not in (text := log.read_text() if log.exists() else ""):
        assert process.poll() is None, f"{name} ended with {process.returncode}: {text}"
        assert time.monotonic() < deadline, f"{name}: no {words!r} after {timeout} s: {text}"
        time.sleep(0.02)
