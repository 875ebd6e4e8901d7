"""The start of a compiled program with topompi's library loaded before the MPI library."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NoReturn

from ...errors import TopompiError
from ...visible import visible
from .elf import MAGIC, ElfFile, elf_file, first_line

__all__ = ["PROCESS", "compiled_program", "preloaded", "refusal", "start"]

# Variables by which launchers tell a process its rank.
PROCESS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")


def compiled_program(name: str) -> str:
    """The path of the program that a word of the command line names, if it is none for Python; else "".

    It is compiled, or a script for another interpreter, which may start a compiled one. A pipe is left to Python
    unread, because its text can be read only once.

    :param name: a path, or a name to be looked for on the ``PATH``.
    """
    path = name if os.path.exists(name) else shutil.which(name) or ""
    line = first_line(path) if os.path.isfile(path) and not path.endswith(".py") else b""
    return path if line.startswith(MAGIC) or (line.startswith(b"#!") and b"python" not in line) else ""


def start(path: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by a compiled program, whose collectives topompi then runs if it can.

    :param path: the program.
    :param arguments: its name, as it was given, and its arguments.
    :raises OSError: if the program cannot be started.
    """
    environment: Mapping[str, str] = os.environ
    try:
        elf = elf_file(path if first_line(path).startswith(MAGIC) else sys.executable)
        why = refusal(elf, os.stat(path).st_mode, path)
    except TopompiError as error:
        why = str(error)
    if not why:
        environment = preloaded(os.environ)
    elif _is_first():
        line = f"topompi: the MPI library runs all collectives: {visible(arguments[0])}: {why}"
        print(line, file=sys.stderr, flush=True)
    os.execve(os.path.abspath(path), list(arguments), environment)


def _is_first() -> bool:
    return next((os.environ[name] for name in PROCESS if name in os.environ), "0") == "0"


def refusal(elf: ElfFile, mode: int, path: str = "") -> str:
    """The reason why no library can be loaded before those of a program; "" if one can.

    :param elf: the program's header.
    :param mode: the mode of its file.
    :param path: its path, whose capabilities are looked up; "" if there are none.
    """
    if not elf.interpreter:
        return "it is linked statically"
    if mode & (stat.S_ISUID | stat.S_ISGID) or _has_capabilities(path):
        return "it runs with another user's rights"
    if not (library := _library()):
        return "topompi was installed without a C compiler"
    return f"expecting no blank and no colon in {library}" if set(" :") & set(library) else ""


def _has_capabilities(path: str) -> bool:
    try:
        return bool(path and os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _library() -> str:
    """Path of the library that is loaded before the MPI library; "" if it was not compiled."""
    beside = (Path(__file__).with_name(f"_preload{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((str(path) for path in beside if path.exists()), "")


def preloaded(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program whose collectives topompi runs.

    :param environment: the present one; libraries of ``LD_PRELOAD`` come after topompi's.
    """
    libraries = " ".join(filter(None, (_library(), environment.get("LD_PRELOAD", ""))))
    return {
        **environment,
        "LD_PRELOAD": libraries,
        "TOPOMPI_PRELOAD": _shared_python(),
        "TOPOMPI_PYTHON": sys.executable,
    }


def _shared_python() -> str:
    """Path of this Python as a shared library; if there is none, a sentence that says so, for the library to print.

    The library prints it, because then all ranks know that one has no Python, whichever host it is on.
    """
    folders: tuple[str | None, ...] = (sysconfig.get_config_var("LIBDIR"), os.path.join(sys.base_prefix, "lib"))
    names: tuple[str | None, ...] = tuple(map(sysconfig.get_config_var, ("INSTSONAME", "LDLIBRARY")))
    paths = (os.path.join(folder, name) for folder in folders if folder for name in names if name and ".so" in name)
    if (path := next(filter(os.path.exists, paths), None)) is not None:
        return path
    version = sysconfig.get_python_version()
    return f"Python {version} of {sys.base_prefix} has no shared library, libpython{version}.so"
