"""Virtual environments with other people's packages, made as they are needed; the standard library does."""

import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

from .packages import ENVIRONMENTS, Package

__all__ = ["MissingError", "folders", "install", "python_of", "source_of"]

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 900  # seconds for what one call of pip does


class MissingError(Exception):
    """Why a package cannot be tried here."""


def python_of(environment: str) -> Path:
    """The interpreter of an environment."""
    return ROOT / f".venv-strangers-{environment}" / "bin" / "python"


def source_of(package: Package, environment: str) -> Path:
    """The folder of a package's unpacked source distribution."""
    return python_of(environment).parents[1] / "sources" / package.name


def folders() -> dict[str, str]:
    """The variables by which Debian's petsc4py and slepc4py find their files where the link /usr/lib/petsc is missing.

    The link comes with packages that petsc4py recommends, and that are not always installed.
    """
    found = {}
    for name in ("petsc", "slepc"):
        there = sorted(Path("/usr/lib").glob(f"{name}dir/*/*-real"))
        if there and not Path("/usr/lib", name).exists():
            found[f"{name.upper()}_DIR"] = str(there[-1])
    return found


def install(package: Package, environment: str) -> None:
    """Make an environment, and put a package and its sources there; what is there stays.

    :raises MissingError: if one of them cannot be had.
    """
    _make(environment)
    _need_debian(package, environment)
    if package.pip:
        _once(environment, package.name, [*(["--no-deps"] if package.bare else []), *package.pip])
    if package.source and not source_of(package, environment).exists():
        _unpack(package, environment)


def _make(environment: str) -> None:
    known, python = ENVIRONMENTS[environment], python_of(environment)
    if not python.exists():
        base = known.python or sys.executable
        if not Path(base).exists():
            raise MissingError(f"{base} is not here")
        system = ["--system-site-packages"] if known.python else []
        _run([base, "-m", "venv", *system, str(python.parents[1])])
        if system:  # found beside its Python; as a link it would look for its own files there, too
            beside = python.parent / "mpirun"
            beside.write_text('#!/bin/sh\nexec /usr/bin/mpirun "$@"\n')
            beside.chmod(0o755)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    _once(environment, "topompi", [*project["dependencies"], *known.pip])


def _once(environment: str, name: str, words: list[str]) -> None:
    """Let pip install these, unless it has done it."""
    stamp = python_of(environment).parents[1] / "installed" / name
    if not stamp.exists() or stamp.read_text() != repr(words):
        _pip(environment, "install", *words)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(repr(words))


def _need_debian(package: Package, environment: str) -> None:
    if package.debian:
        asked = subprocess.run(["dpkg", "-s", *package.debian], capture_output=True, text=True, timeout=60)
        if asked.returncode or asked.stdout.count("install ok installed") < len(package.debian):
            raise MissingError(f"Debian's {' '.join(package.debian)} are to be installed")


def _unpack(package: Package, environment: str) -> None:
    folder = source_of(package, environment)
    parts = folder.with_name(f"{package.name}.part")
    name = package.source.partition("==")[0]
    _pip(environment, "download", "--no-binary", name, "--no-deps", "-d", str(parts), package.source)
    archive = next(parts.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(parts, filter="data")
    (parts / archive.name.removesuffix(".tar.gz")).rename(folder)


def _pip(environment: str, *words: str) -> None:
    command = [str(python_of(environment)), "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    _run(command)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "PYTHONPATH": ""}
        )
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"no end within {LIMIT} s: {' '.join(command)}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
        raise MissingError(f"{' '.join(command[-4:])}: {last}")
