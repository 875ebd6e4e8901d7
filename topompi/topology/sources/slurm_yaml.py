"""Slurm's ``topology.yaml`` (Slurm 25.05 and newer): a list of named topologies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import yaml

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from ..hostlist import expand
from .slurm import SwitchRow, build_tree, counted, join_blocks

__all__ = ["NAME", "read", "recognise"]

NAME = "Slurm topology.yaml"

_FIRST_KEY = re.compile(r"^-\s+[\"']?topology[\"']?\s*:", re.MULTILINE)
_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"


@dataclass(frozen=True)
class _Entry:
    """A YAML value that knows its file, so that messages can say where it is."""

    node: yaml.Node
    file: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.node.start_mark.line + 1}"

    def fields(self, allowed: Sequence[str], report: Report) -> dict[str, _Entry]:
        """The values of a mapping by key, without empty ones; keys that are not allowed are reported."""
        shown = ", ".join(allowed)
        if not isinstance(self.node, yaml.MappingNode):
            raise SourceError(f"{self.place}: expecting a mapping with {shown}, got {self._describe()}")
        found: dict[str, _Entry] = {}
        for key, value in self.node.value:
            place = f"{self.file}:{key.start_mark.line + 1}"
            if key.value not in allowed:
                report.problem(SourceError(f"{place}: expecting one of {shown}, got {key.value!r}"))
            elif key.value in found:
                report.problem(SourceError(f"{place}: expecting {key.value} once, got it twice"))
            elif value.tag != _NULL:
                found[key.value] = _Entry(value, self.file)
        return found

    def items(self) -> list[_Entry]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise SourceError(f"{self.place}: expecting a list, got {self._describe()}")
        return [_Entry(node, self.file) for node in self.node.value]

    def text(self) -> str:
        """The value of a scalar."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise SourceError(f"{self.place}: expecting a name or a host list, got {self._describe()}")
        return str(self.node.value)

    def is_true(self) -> bool:
        """Whether the value is a true boolean."""
        return self.node.tag == _BOOL and self.text().lower() in ("true", "yes", "on")

    def _describe(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value)
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


def recognise(head: str) -> bool:
    """Whether a list item starts with ``topology:``, which must be the first attribute."""
    return _FIRST_KEY.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """The fabric of the first topology with ``cluster_default: true``, else of the first one.

    Trees and blocks mean what they mean in ``topology.conf``.

    :raises SourceError, FabricError: with file and line; also for a flat topology, which lists no hosts.
    """
    kinds = ("topology", "cluster_default", "tree", "block", "flat")
    topologies = [topology.fields(kinds, report) for text in texts for topology in _parse(text).items()]
    if not topologies:
        raise SourceError(f"{texts[0].name}: expecting a list of topologies, got an empty one")
    defaults = (fields for fields in topologies if "cluster_default" in fields)
    chosen = next((fields for fields in defaults if fields["cluster_default"].is_true()), topologies[0])
    return build_tree(texts[0].name, list(_rows(chosen, texts[0].name, report)), report)


class _Stream:
    """What PyYAML reads from: the lines of a text, with their limits."""

    def __init__(self, text: InputFile) -> None:
        self._lines = (line if number == 1 else f"\n{line}" for number, line in text.lines())

    def read(self, size: int = -1) -> str:
        """Some more of the text; empty at its end."""
        return "".join(islice(self._lines, 256))


def _parse(text: InputFile) -> _Entry:
    try:
        node = yaml.compose(_Stream(text), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SourceError(f"{text.name}:{line}: expecting YAML, but {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{text.name}: expecting YAML, but {str(error).splitlines()[0]}") from error
    except (ValueError, IndexError, TypeError) as error:  # PyYAML's scanner raises them over some nonsense
        raise SourceError(f"{text.name}: expecting YAML, but {error}") from error
    if node is None:
        raise SourceError(f"{text.name}: expecting a list of topologies, got an empty file")
    return _Entry(node, text.name)


def _rows(topology: dict[str, _Entry], file: str, report: Report) -> Iterator[SwitchRow]:
    given = [kind for kind in ("tree", "block", "flat") if kind in topology]
    place = next((entry.place for entry in topology.values()), file)
    if len(given) != 1:
        raise SourceError(f"{place}: expecting one of tree, block or flat, got {' and '.join(given) or 'none'}")
    if given == ["flat"]:
        raise SourceError(f"{place}: expecting a tree or block topology, got a flat one, which lists no hosts")
    if given == ["tree"]:
        switches = topology["tree"].fields(["switches"], report)
        yield from counted(_switch_rows(switches.get("switches"), "switch", place, report))
    else:
        blocks = topology["block"].fields(["block_sizes", "blocks"], report)
        yield from join_blocks(list(counted(_switch_rows(blocks.get("blocks"), "block", place, report))))


def _switch_rows(entry: _Entry | None, key: str, place: str, report: Report) -> Iterator[SwitchRow]:
    plural = "switches" if key == "switch" else "blocks"
    items = entry.items() if entry else []
    if not items:
        raise SourceError(f"{place}: expecting a list of {plural}, got none")
    allowed = [key, "nodes", "children"] if key == "switch" else [key, "nodes"]
    for item in items:
        fields = item.fields(allowed, report)
        lists = [_hosts(fields.get(name), report) for name in ("nodes", "children")]
        if key in fields:
            yield SwitchRow(fields[key].text(), lists[0], lists[1], item.place)
        else:
            report.problem(SourceError(f"{item.place}: expecting a field {key}, got none"))


def _hosts(entry: _Entry | None, report: Report) -> tuple[str, ...]:
    if entry is None:
        return ()
    expression = entry.text()
    try:
        return tuple(expand(expression))
    except SourceError as error:
        report.problem(SourceError(f"{entry.place}: {error}"))
        return ()
