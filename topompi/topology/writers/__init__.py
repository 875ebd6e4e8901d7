"""Writers of topologies in the formats of other programs, chosen by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import SourceError

if TYPE_CHECKING:
    from ..routes import Routes

__all__ = ["ENDINGS", "written"]

# Endings of file names, each with the format that it stands for.
ENDINGS = {
    ".json": "topompi's fabric.json, with the routes that the source contains",
    ".ibnetdiscover": "an ibnetdiscover report",
    ".conf": "Slurm's topology.conf",
    ".yaml": "Slurm's topology.yaml",
    ".dot": "a graph for Graphviz",
    ".graphml": "a graph for GraphML's readers",
}


def written(
    routes: Routes, name: str, kind: str = "tree", node_of: Callable[[str], str] | None = None
) -> tuple[str, list[str]]:
    """Write a topology in the format that the ending of a file's name stands for.

    :param routes: the routes over the fabric.
    :param name: name of the file; ``-`` stands for JSON.
    :param kind: ``tree`` or ``block``, for Slurm's formats.
    :param node_of: Slurm's name of each host, for Slurm's formats; None if Slurm's names are the hosts' own.
    :returns: the text, and remarks on what the format leaves out.
    :raises SourceError: if the ending is unknown, two hosts get one name, or Slurm takes no such name.
    """
    ending = next((one for one in ENDINGS if name.endswith(one)), ".json" if name == "-" else "")
    if not ending:
        raise SourceError(f"{name}: expecting a name that ends with {', '.join(ENDINGS)}, or -")
    if ending in (".conf", ".yaml"):
        from ...inputs.slurm import topologywriter
        from .slurmtree import named_by, slurm_tree

        rows, notes = slurm_tree(routes)
        rows = named_by(rows, node_of or str)
        write = topologywriter.write_conf if ending == ".conf" else topologywriter.write_yaml
        return write(rows, kind, f"{' '.join(routes.fabric.name.split())}, written by topompi"), notes
    if ending == ".json":
        from ..sources import fabricjson

        return fabricjson.write(routes.fabric, routes), []
    if ending == ".ibnetdiscover":
        from .ibnetdiscover import write_ibnetdiscover

        return write_ibnetdiscover(routes.fabric), []
    from .graphs import write_dot, write_graphml

    return (write_dot if ending == ".dot" else write_graphml)(routes.fabric), []
