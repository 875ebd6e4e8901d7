"""Common helpers for tests of examples: the programs as commands and modules, and the output that documents show."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support import ROOT, mpirun, run_mpi

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED = re.compile(r"\d[\d.,]*(?= s\b| ms\b|%|x\b| million points/s| ranks moved)")
FINGERPRINT = re.compile(r"\b[0-9a-f]{16}\b")


def program(name: str) -> Path:
    """Where an example's program lies."""
    return ROOT / "examples" / name / f"{name}.py"


def module(name: str) -> ModuleType:
    """An example's program as a module."""
    spec = importlib.util.spec_from_file_location(name, program(name))
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # where dataclasses look for it
    spec.loader.exec_module(loaded)
    return loaded


def run_examples(
    name: str, size: int, *runs: Sequence[str | Path], env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """What an example says as JSON, which must be all that it prints, in runs with other options in one job."""
    words = [word for options in runs for word in ("--", "--json", *options)]
    done = run_mpi(size, ROOT / "tests" / "programs" / "examples.py", program(name), *words, timeout=120, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(runs)
    return said


def failure(name: str, size: int, *options: str | Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    """How an example refuses: its exit code, and the one line that it says on all ranks together."""
    done = run_mpi(size, program(name), *options, timeout=60, env=env)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith((f"{name}: ", f"{name}.py: error: "))]
    assert "Traceback" not in done.stderr
    assert not done.stdout
    return done.returncode, line


def check_readme(name: str, folder: Path) -> None:
    """Run the commands of an example's README and compare what they print, but for what was measured.

    Numbers of seconds, shares and rates differ from run to run, and fingerprints from machine to machine, but not
    within a document: they are numbered in order.
    """
    text = (ROOT / "examples" / name / "README.md").read_text(encoding="utf-8")
    shown, printed = [], []
    for block in CONSOLE.findall(text):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = command.replace("\\\n", " ").partition("\n")
            shown += expected.strip().splitlines()
            printed += _run(line, folder).strip().splitlines()
    assert shown, "a README shows at least one command"
    assert _masked(printed) == _masked(shown)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / "examples" / name / target).exists(), target


def _run(line: str, folder: Path) -> str:
    words = shlex.split(line)
    settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in words[len(settings) :]]
    words = [sys.executable if word == "python" else word for word in words]
    words = [*mpirun(), *words[1:]] if words[0] == "mpirun" else words
    env = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _masked(lines: list[str]) -> list[str]:
    names: dict[str, str] = {}
    plain = [MEASURED.sub("#", line.rstrip()) for line in lines]
    return [FINGERPRINT.sub(lambda found: names.setdefault(found[0], f"<{len(names)}>"), line) for line in plain]
