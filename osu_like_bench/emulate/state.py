"""A file for each network, written before the network is made, so that a crash leaves nothing that cannot be found."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs import parse_json, read_text

__all__ = ["PREFIX", "State", "directory", "states"]

PREFIX = "topompi"
FILE = "state.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def directory() -> Path:
    """The directory of the networks' states; it vanishes when the machine restarts, as the networks do."""
    return Path(os.environ.get("TOPOMPI_EMULATE_STATE") or f"/run/{PREFIX}-emulate")


@dataclass(frozen=True)
class State:
    """One network as written down.

    :param name: what the user calls it.
    :param token: part of every namespace's name, random, so that no other network shares it.
    :param spec: what it was made from.
    :param hosts: the hosts' names; each has a namespace.
    :param owner: id of the process that will take the network down; 0 if only ``emulate down`` does.
    :param owner_start: when that process started, for ids are used again.
    """

    name: str
    token: str
    spec: str
    hosts: tuple[str, ...]
    owner: int = 0
    owner_start: str = ""

    @classmethod
    def make(cls, name: str, spec: str, hosts: tuple[str, ...], owned: bool) -> State:
        """Write down a new network.

        :param name: what the user calls it.
        :param spec: what it is made from.
        :param hosts: the hosts' names.
        :param owned: whether this process takes the network down.
        :raises BenchmarkError: if there is a network of that name, or it cannot be the name of a directory.
        """
        owner = os.getpid() if owned else 0
        if not _NAME.fullmatch(name):
            raise BenchmarkError(f"--name: expecting letters, digits and ._- after a letter or digit, got {name!r}")
        state = cls(name, secrets.token_hex(3), spec, hosts, owner, _start_of(owner) if owned else "")
        made = directory() / f".{state.token}"
        made.mkdir(parents=True, mode=0o700)
        (made / FILE).write_text(json.dumps(asdict(state)))
        try:
            made.rename(state.path)  # so that no one ever sees a directory without its state
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
        """The names of the network's namespaces: the switches', the head's, one a host."""
        return (self.switches, self.head, *map(self.namespace, self.hosts))

    @property
    def switches(self) -> str:
        """The namespace that holds all bridges."""
        return f"{PREFIX}-{self.token}.switches"

    @property
    def head(self) -> str:
        """The namespace from which jobs start."""
        return f"{PREFIX}-{self.token}.head"

    def namespace(self, host: str) -> str:
        """The namespace of a host."""
        return f"{PREFIX}-{self.token}-{host}"

    @property
    def in_use(self) -> bool:
        """Whether the process that takes the network down is alive."""
        return self.owner != 0 and _start_of(self.owner) == self.owner_start

    def forget(self) -> None:
        """Remove what was written down; all else must be gone."""
        shutil.rmtree(self.path, ignore_errors=True)


def states() -> Iterator[State]:
    """The states of all networks on this machine."""
    for path in sorted(directory().glob("[!.]*")):
        try:
            if not (path / FILE).exists():  # it was removed meanwhile
                continue
            data = parse_json(read_text(path / FILE, BenchmarkError, "a state"), str(path / FILE), BenchmarkError)
            yield State(**{**data, "hosts": tuple(data["hosts"])})
        except (TypeError, KeyError) as error:
            raise BenchmarkError(f"{path / FILE}: expecting a state as `emulate up` writes it, got {error}") from error


def _start_of(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty where there is none. A pid alone may be another's."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
