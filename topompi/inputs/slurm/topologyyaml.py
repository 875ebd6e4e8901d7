"""A reader of Slurm's ``topology.yaml`` (Slurm 25.05 and newer): a list of named topologies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import SourceError
from ..files import InputFile
from ..hostlist import expand
from .switches import Note, Problem, SwitchRow, counted, no_note
from .topologyblocks import aggregated, join_blocks
from .topologytorus import SlurmTorus, read_tori

if TYPE_CHECKING:
    from ..yamlvalues import Entry

__all__ = ["NAME", "read_topology", "recognise"]

NAME = "Slurm topology.yaml"

KINDS = ("topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d")
_UNREAD = {
    "flat": "a flat one, which lists no hosts",
    "ring": "a ring, which Slurm alone knows how to use",
}
_FIRST_KEY = re.compile(
    r"^[ \t]*(?:-\s+|\[\s*\{\s*)[\"']?(?:topology|cluster_default)[\"']?\s*:", re.MULTILINE | re.IGNORECASE
)


def recognise(head: str) -> bool:
    """Return whether an item of a list, in YAML or JSON, starts with ``topology`` or ``cluster_default``."""
    return _FIRST_KEY.search(head) is not None


def read_topology(
    texts: Sequence[InputFile], problem: Problem, note: Note = no_note, name: str | None = None
) -> list[SwitchRow] | list[SlurmTorus]:
    """Read the switches or tori of one topology: the named one, else the first default one, else the first.

    Trees and blocks have the same meaning as in ``topology.conf``. The other topologies are not looked into.

    :param texts: the files.
    :param problem: function that is called with each error.
    :param note: function that is called with a remark if there are several topologies.
    :param name: name of the topology to read; None for the one with ``cluster_default: true``.
    :raises SourceError: if the list is empty or malformed, with file and line; also if the topology is flat or a ring,
        or none has the name.
    """
    from ..yamlvalues import parse_yaml  # imported here, because PyYAML takes a third of the import time of all sources

    entries = [topology for text in texts for topology in parse_yaml(text).items()]
    topologies = [topology.fields(None, problem) for topology in entries]
    if not topologies:
        raise SourceError(f"{texts[0].name}: expecting a list of topologies, got an empty one")
    names = [fields["topology"].text() if "topology" in fields else "" for fields in topologies]
    at = _chosen(topologies, names, name, texts[0].name)
    others = [other for other in names[:at] + names[at + 1 :] if other]
    way = f"; SOURCE#NAME reads another one: {', '.join(others)}" if others else ""
    if others and name is None:
        note(f"{entries[at].place}: topology {names[at]} is read{way}")
    fields = entries[at].fields(KINDS, problem)
    kind = _kind_of(fields, texts[0].name, way)
    if kind == "torus3d":
        return read_tori(fields[kind], problem)
    return _tree(fields[kind], problem) if kind == "tree" else _blocks(fields[kind], problem)


def _chosen(topologies: Sequence[dict[str, Entry]], names: Sequence[str], name: str | None, file: str) -> int:
    """Return the number of the topology to read.

    :param topologies: fields of each topology.
    :param names: name of each topology, empty if it has none.
    :param name: wanted name; None for the default topology.
    :param file: name of the file.
    """
    if name is not None:
        if name not in names:
            raise SourceError(f"{file}: expecting one of the topologies {', '.join(names)}, got {name!r}")
        return names.index(name)
    default = "cluster_default"
    return next((at for at, fields in enumerate(topologies) if default in fields and fields[default].is_true()), 0)


def _kind_of(topology: dict[str, Entry], file: str, way: str) -> str:
    given = [kind for kind in KINDS[2:] if kind in topology]
    place = next((entry.place for entry in topology.values()), file)
    if len(given) != 1:
        raise SourceError(f"{place}: expecting one of tree, block or flat, got {' and '.join(given) or 'none'}")
    if given[0] in _UNREAD:
        raise SourceError(f"{place}: expecting a tree, block or torus topology, got {_UNREAD[given[0]]}{way}")
    return given[0]


def _tree(entry: Entry, problem: Problem) -> list[SwitchRow]:
    switches = entry.fields(["switches"], problem).get("switches")
    return list(counted(_switch_rows(switches, "switch", entry.place, problem)))


def _blocks(entry: Entry, problem: Problem) -> list[SwitchRow]:
    fields = entry.fields(["block_sizes", "blocks"], problem)
    blocks = list(counted(_switch_rows(fields.get("blocks"), "block", entry.place, problem)))
    sizes = fields.get("block_sizes")
    texts = [size.text() for size in sizes.items()] if sizes else []
    names = [block.name for block in blocks]
    return join_blocks(blocks, list(aggregated(names, texts, sizes.place if sizes else "", problem)), problem)


def _switch_rows(entry: Entry | None, key: str, place: str, problem: Problem) -> Iterator[SwitchRow]:
    plural = "switches" if key == "switch" else "blocks"
    items = entry.items() if entry else []
    if not items:
        raise SourceError(f"{place}: expecting a list of {plural}, got none")
    allowed = [key, "nodes", "children"] if key == "switch" else [key, "nodes"]
    for item in items:
        fields = item.fields(allowed, problem)
        lists = [_hosts(fields.get(name), problem) for name in ("nodes", "children")]
        if key in fields:
            yield SwitchRow(fields[key].text(), lists[0], lists[1], item.place)
        else:
            problem(SourceError(f"{item.place}: expecting a field {key}, got none"))


def _hosts(entry: Entry | None, problem: Problem) -> tuple[str, ...]:
    if entry is None:
        return ()
    expression = entry.text()
    try:
        return tuple(expand(expression))
    except SourceError as error:
        problem(SourceError(f"{entry.place}: {error}"))
        return ()
