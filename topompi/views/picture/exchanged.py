"""The loads of links in a job's exchange of messages, given as a graph, a schedule or an algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import read_text
from ...mapping.readers import read_graph
from ...schedules.analysis.loads import messages_of
from ...schedules.exports.jsonio import from_json
from ...schedules.registry import ALGORITHMS, make
from ...schedules.segments import pieces_of
from ...topology import Routes, TopologyInterface
from ...topology.hostnames import require_hosts
from ..network import network_of
from .loads import Loads, PictureError, link_loads

__all__ = ["exchanged_loads"]

Integers = NDArray[np.int64]


def exchanged_loads(
    exchanged: str,
    routes: Routes,
    hosts: Sequence[str],
    nbytes: int,
    columns: Sequence[str] = (),
    notes: list[str] | None = None,
) -> Loads:
    """Compute the loads of all links when a job exchanges the messages of a graph, a schedule or an algorithm.

    :param exchanged: file of a communication graph, file of a schedule (FILE.json), or ``COLLECTIVE:ALGORITHM``.
    :param routes: the routes over the whole fabric.
    :param hosts: host name of each rank of the job.
    :param nbytes: number of bytes of one block if a schedule's file is given, of the whole message if an algorithm is
        given; ignored if a graph is given.
    :param columns: meaning of a graph's table, see `read_graph`; empty to decide by the content.
    :param notes: list that receives a line per guess that can be wrong.
    :raises PictureError: if the text is none of these, or the exchange has more ranks than the job.
    """
    try:
        found = _of_schedule(exchanged, routes, hosts, nbytes)
        if found is None:
            graph = read_graph(exchanged, columns=columns, notes=notes)
            found = graph.sources, graph.targets, graph.volume
    except TopompiError:
        raise
    except ValueError as error:
        raise PictureError(f"--loads {exchanged}: {error}") from error
    source, target, volume = found
    most = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
    if most > len(hosts):
        raise PictureError(f"--loads {exchanged}: expecting at most {len(hosts)} ranks, as the job has, got {most}")
    return link_loads(routes, require_hosts(routes.fabric, hosts).astype(np.int64), (source, target, volume))


def _of_schedule(
    exchanged: str, routes: Routes, hosts: Sequence[str], nbytes: int
) -> tuple[Integers, Integers, Integers] | None:
    """Return the sending rank, the receiving rank and the bytes of each message, arrays of shape (messages,).

    The result is None if the text names neither a schedule's file nor an algorithm.

    :param exchanged: file of a schedule (FILE.json), or ``COLLECTIVE:ALGORITHM``.
    :param routes: the routes over the whole fabric.
    :param hosts: host name of each rank of the job.
    :param nbytes: number of bytes of one block if a schedule's file is given, of the whole message if an algorithm is
        given.
    """
    collective, colon, algorithm = exchanged.partition(":")
    if colon and collective in ALGORITHMS and not Path(exchanged).exists():
        network = network_of(TopologyInterface.place(hosts, routes, virtual=True))
        pieces = pieces_of(collective, algorithm, nbytes)
        found = messages_of(make(collective, pieces.name, network, 0, pieces.blocks))
        return found.source, found.destination, found.blocks * -(-nbytes // (pieces.blocks or 1))
    text = read_text(exchanged, PictureError, "what a job exchanges") if Path(exchanged).suffix == ".json" else ""
    if '"collective"' in text[:4096]:
        found = messages_of(from_json(text))
        return found.source, found.destination, found.blocks * nbytes
    return None
