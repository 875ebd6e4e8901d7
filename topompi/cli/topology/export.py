"""``topompi topology export``: a topology in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from ...inputs.writing import write_text
from ...topology.writers import ENDINGS, written
from ..inputs import Lfts, Source, TopologyOptions, grouped, list_findings, reading, routes_of
from ..terminal import Limit

__all__ = ["export"]

_OUTPUT = f"FILE{', '.join(ENDINGS)}, or - (JSON)."
_NODES = "Slurm's names of the nodes: s/REGEX/TEXT/, or a file with a host and a node per line."


@grouped
def export(
    source: Source,
    output: Annotated[str, typer.Option("--output", "-o", help=_OUTPUT)],
    *,
    lfts: Lfts = None,
    kind: Annotated[str, typer.Option("--format", help="tree or block, for Slurm's files.")] = "tree",
    nodes: Annotated[str | None, typer.Option("--rename", metavar="RULE|FILE", help=_NODES)] = None,
    how: TopologyOptions,
    limit: Limit = None,
) -> None:
    """Write a topology for other programs: as fabric.json, ibnetdiscover report, Slurm's files, DOT or GraphML.

    The ending of the output's name chooses the format. Properties that it cannot hold are listed as notes. Slurm's
    topology.conf and topology.yaml hold a tree of switches, or blocks, one per leaf switch.
    """
    with reading(source, lfts, how) as (discovery, report):
        report.step(f"writing {output}")
        node_of = None
        if nodes is not None:
            from ...topology.writers.slurmtree import node_names

            node_of = node_names(nodes)
        text, notes = written(routes_of(discovery, how.rails), output, kind, node_of)
        for note in notes:
            report.note(note)
        if output == "-":
            print(text)
        else:
            write_text(output, text)
    list_findings(report)
