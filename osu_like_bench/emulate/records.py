"""Records of emulated networks, one file per network.

A record is written before its network is made, so that all parts of the network can be removed even after a crash.
Root runs the programs and removes the namespaces that these files name. Therefore a file is read only if no other user
could have written it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from topompi.errors import BenchmarkError
from topompi.inputs import parse_json, read_text
from topompi.inputs.kernel import kernel_text

from ..guard import intrusion

__all__ = ["PREFIX", "NetworkRecord", "directory", "make_folder", "put", "require_own", "states"]

PREFIX = "topompi"
FILE = "state.json"
_REMEDY = "chmod or remove it, or name another directory in TOPOMPI_EMULATE_STATE"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # networks and hosts: parts of paths and of namespaces' names
_NAMES = "letters, digits and ._- after a letter or digit, 63 at most"
_TOKEN, _TICKS = re.compile("[0-9a-f]{6}"), re.compile("[0-9]*")


def directory() -> Path:
    """Return the directory of the records; it vanishes when the machine restarts, as the networks do."""
    return Path(os.environ.get("TOPOMPI_EMULATE_STATE") or f"/run/{PREFIX}-emulate")


def make_folder(path: Path) -> None:
    """Make a folder, writable by its owner and readable by all, independent of the umask.

    :raises FileExistsError: if the folder exists.
    """
    path.mkdir(mode=0o700)
    path.chmod(0o755)


def put(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file as a whole, with given permissions, in place of any file of the same name.

    :param path: path of the file, in a folder that only this user may write.
    :param text: content of the file.
    :param mode: permission bits of the file.
    """
    new = path.with_name(f".{secrets.token_hex(6)}")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        os.fchmod(file, mode)
        stream.write(text)
    new.replace(path)


def require_own(path: Path, remedy: str) -> None:
    """Raise BenchmarkError if another user than root and this user may write a path.

    :param path: path of a file or a folder.
    :param remedy: remedy, at the end of the message.
    """
    others = intrusion(str(path))
    if others:
        raise BenchmarkError(f"emulate: expecting {path} to be writable for root alone, got {others}: {remedy}")


@dataclass(frozen=True)
class NetworkRecord:
    """The record of one network.

    :param name: name that the user gave it.
    :param token: random part of the names of its namespaces, so that no other network shares them.
    :param spec: specification that it was made from.
    :param hosts: names of the hosts; each has a namespace.
    :param owner: id of the process that will take the network down; 0 if only ``emulate down`` does.
    :param owner_start: start time of that process, because process ids are reused.
    """

    name: str
    token: str
    spec: str
    hosts: tuple[str, ...]
    owner: int = 0
    owner_start: str = ""

    @classmethod
    def make(cls, name: str, spec: str, hosts: tuple[str, ...], owned: bool) -> NetworkRecord:
        """Write the record of a new network.

        :param name: name that the user gives the network.
        :param spec: specification of the network.
        :param hosts: names of the hosts.
        :param owned: True if this process takes the network down.
        :raises BenchmarkError: if a network has this name, or it cannot be the name of a directory.
        """
        owner = os.getpid() if owned else 0
        if not _NAME.fullmatch(name):
            raise BenchmarkError(f"--name: expecting {_NAMES}, got {name!r}")
        strange = [host for host in hosts if not _NAME.fullmatch(host)]
        if strange:
            raise BenchmarkError(f"emulate: expecting hosts named by {_NAMES}, got {strange[0]!r}")
        state = cls(name, secrets.token_hex(3), spec, hosts, owner, _start_of(owner) if owned else "")
        for folder in (*reversed(directory().parents), directory()):
            with suppress(FileExistsError):
                make_folder(folder)
        require_own(directory(), _REMEDY)
        made = directory() / f".{state.token}"
        make_folder(made)
        put(made / FILE, json.dumps(asdict(state)))
        try:
            made.rename(state.path)  # renamed, so that no directory without its record is ever visible
        except OSError:
            shutil.rmtree(made)
            raise BenchmarkError(
                f"--name: expecting a name that is free, got {name!r}; take that network down or choose another name"
            ) from None
        return state

    @property
    def path(self) -> Path:
        """The network's directory."""
        return directory() / self.name

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Names of the network's namespaces: the switches', the head's, and one per host."""
        return (self.switches, self.head, *map(self.namespace, self.hosts))

    @property
    def switches(self) -> str:
        """Name of the namespace that holds all bridges."""
        return f"{PREFIX}-{self.token}.switches"

    @property
    def head(self) -> str:
        """Name of the namespace from which jobs start."""
        return f"{PREFIX}-{self.token}.head"

    def namespace(self, host: str) -> str:
        """Return the name of a host's namespace."""
        return f"{PREFIX}-{self.token}-{host}"

    @property
    def in_use(self) -> bool:
        """Whether the process that will take the network down is alive."""
        return self.owner != 0 and _start_of(self.owner) == self.owner_start

    def forget(self) -> None:
        """Remove the record; all other parts of the network must be gone."""
        shutil.rmtree(self.path, ignore_errors=True)


def states() -> Iterator[NetworkRecord]:
    """Yield the records of all networks on this machine.

    :raises BenchmarkError: if a record is malformed, or other users than root and this user may have written it.
    """
    if not os.path.lexists(directory()):
        return
    require_own(directory(), _REMEDY)
    for folder in sorted(directory().glob("[!.]*")):
        for path in (folder, *folder.rglob("*")):
            require_own(path, _REMEDY)
        file = folder / FILE
        if file.exists():  # otherwise it was removed meanwhile
            yield _checked(parse_json(read_text(file, BenchmarkError, "a state"), str(file), BenchmarkError), file)


def _checked(data: Any, file: Path) -> NetworkRecord:
    """Return the record in a file, after a check that each field has the form that ``NetworkRecord.make`` writes."""
    try:
        state = NetworkRecord(**{**data, "hosts": tuple(data["hosts"])})
    except (TypeError, KeyError) as error:
        raise BenchmarkError(f"{file}: expecting a state as `emulate up` writes it, got {error}") from error
    is_sound = {
        "name": state.name == file.parent.name and _fits(_NAME, state.name),
        "token": _fits(_TOKEN, state.token),
        "spec": isinstance(state.spec, str),
        "hosts": all(_fits(_NAME, host) for host in state.hosts),
        "owner": type(state.owner) is int and state.owner >= 0,
        "owner_start": _fits(_TICKS, state.owner_start),
    }
    if not all(is_sound.values()):
        field = next(field for field, sound in is_sound.items() if not sound)
        got = repr(getattr(state, field))[:80]
        raise BenchmarkError(f"{file}: field {field}: expecting what `emulate up` writes into this folder, got {got}")
    return state


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _start_of(pid: int) -> str:
    """Return the start time of a process, in clock ticks since boot; empty if it is gone.

    The id alone may by now be another process's. A process that has ended and is not yet waited for (Z) counts as gone,
    because it takes nothing down any more.
    """
    words = kernel_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return "" if len(words) < 20 or words[0] in "ZX" else words[19]
