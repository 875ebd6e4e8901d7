"""A reader of Slurm's ``topology.yaml`` (Slurm 25.05 and newer): a list of named topologies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import SourceError
from ..files import InputFile
from ..hostlist import expand
from .switches import Problem, SwitchRow, counted, join_blocks

if TYPE_CHECKING:
    from ..yamlvalues import Entry

__all__ = ["NAME", "read_switches", "recognise"]

NAME = "Slurm topology.yaml"

_FIRST_KEY = re.compile(r"^-\s+[\"']?topology[\"']?\s*:", re.MULTILINE)


def recognise(head: str) -> bool:
    """Return whether an item of a YAML list starts with ``topology:``, which Slurm requires as first attribute."""
    return _FIRST_KEY.search(head) is not None


def read_switches(texts: Sequence[InputFile], problem: Problem) -> list[SwitchRow]:
    """Read the switches of the first topology with ``cluster_default: true``, else of the first topology.

    Trees and blocks have the same meaning as in ``topology.conf``.

    :param texts: the files.
    :param problem: function that is called with each error.
    :raises SourceError: if the list is empty or malformed, with file and line; also if the topology is flat, because a
        flat topology lists no hosts.
    """
    from ..yamlvalues import parse_yaml  # imported here, because PyYAML takes a third of the import time of all sources

    kinds = ("topology", "cluster_default", "tree", "block", "flat")
    topologies = [topology.fields(kinds, problem) for text in texts for topology in parse_yaml(text).items()]
    if not topologies:
        raise SourceError(f"{texts[0].name}: expecting a list of topologies, got an empty one")
    defaults = (fields for fields in topologies if "cluster_default" in fields)
    chosen = next((fields for fields in defaults if fields["cluster_default"].is_true()), topologies[0])
    return list(_rows(chosen, texts[0].name, problem))


def _rows(topology: dict[str, Entry], file: str, problem: Problem) -> Iterator[SwitchRow]:
    given = [kind for kind in ("tree", "block", "flat") if kind in topology]
    place = next((entry.place for entry in topology.values()), file)
    if len(given) != 1:
        raise SourceError(f"{place}: expecting one of tree, block or flat, got {' and '.join(given) or 'none'}")
    if given == ["flat"]:
        raise SourceError(f"{place}: expecting a tree or block topology, got a flat one, which lists no hosts")
    if given == ["tree"]:
        switches = topology["tree"].fields(["switches"], problem)
        yield from counted(_switch_rows(switches.get("switches"), "switch", place, problem))
    else:
        blocks = topology["block"].fields(["block_sizes", "blocks"], problem)
        yield from join_blocks(list(counted(_switch_rows(blocks.get("blocks"), "block", place, problem))))


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
