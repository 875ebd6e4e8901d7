"""Requests to a topology service and their answers, in two protocols: text lines, and JSON objects, one per line.

Lines: the answer to ``query A:B`` is A, the ids of the switches crossed in order, and B, separated by blanks (Subramoni
2013, section 2.8), or ``error: ...``.

Objects: a request has a field ``request`` and may have an ``id``, which the answer repeats. Each answer has
``generation``, the number of the version of the routes that it is derived from; if the request fails, its only other
fields are ``error``, the message, and ``kind``, the class of the error.

- ``view``: a job's part of the routes. Its ``hosts`` are names, or a host list in Slurm's format, by default all; its
  ``fields``, names in ``FIELDS``, select the contents of the answer.
- ``tree``: the cluster tree of all hosts, as ``parent`` and ``height`` of each node; the hosts are the first nodes.
- ``generation``: the current version's number and its ``digest``, by which a running job sees whether its routes are
  still valid.
- ``health`` and ``counters``: state and activity of the service.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import parse_json
from ...inputs.hostlist import expand
from ..fabric import FloatArray
from ..interface import TopologyInterface
from ..routes import Routes
from ..sources.fabricjson import document_of
from .bounds import Bounds
from .generation import Generation

__all__ = ["FIELDS", "SLOW", "RequestError", "answer_line", "answer_slow", "encode", "failure", "parse_request"]

SLOW = ("view", "tree")  # requests that a worker process answers, because they take long
QUICK = ("generation", "health", "counters")


class RequestError(TopompiError, ValueError):
    """An error for an invalid request, or one beyond a limit."""


def answer_line(line: bytes, generation: Generation) -> str:
    """Answer a text line ``query A:B``, without the line end; an error becomes an answer ``error: ...``."""
    try:
        text = line.decode().strip()
        verb, _, pair = text.partition(" ")
        sender, colon, receiver = pair.strip().partition(":")
        if verb != "query" or not colon or not sender or not receiver:
            raise RequestError(f"expecting 'query A:B' or an object of JSON, got {text[:80]!r}")
        return " ".join((sender, *generation.route(sender, receiver), receiver))
    except UnicodeDecodeError:
        return "error: expecting a request in UTF-8, got other bytes"
    except TopompiError as error:
        return f"error: {error}"


def parse_request(line: bytes) -> dict[str, object]:
    """Parse the request in a line of JSON; RequestError if it is invalid."""
    request = parse_json(line, "request", RequestError)
    kind = request.get("request") if isinstance(request, dict) else None
    if kind not in (*SLOW, *QUICK):
        wanted = ", ".join((*SLOW, *QUICK))
        raise RequestError(f"field request: expecting one of {wanted}, got {_short(kind)}")
    identity = request.get("id")
    if not isinstance(identity, str | int | None) or len(str(identity)) > 80:
        raise RequestError(f"field id: expecting a number or a short text, got {_short(identity)}")
    return dict(request)


def failure(error: Exception) -> dict[str, object]:
    """Make the fields ``error`` and ``kind`` of an answer that reports an error."""
    return {"error": str(error), "kind": type(error).__name__}


def encode(request: dict[str, object], fields: dict[str, object], generation: int) -> bytes:
    """Write an answer as a line of JSON.

    :param request: the request, whose ``id``, if any, is repeated.
    :param fields: fields of the answer.
    :param generation: number of the generation (loaded version of the routes) that the answer is derived from.
    """
    answer = {"generation": generation} | fields
    if request.get("id") is not None:
        answer["id"] = request["id"]
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def answer_slow(request: dict[str, object], generation: Generation, bounds: Bounds) -> dict[str, object]:
    """Compute the fields of the answer to a request for a view or a tree.

    :param request: a request for a view or a tree.
    :param generation: the loaded version of the routes to answer from.
    :param bounds: the service's limits.
    :raises TopompiError: if the request is invalid, exceeds a limit, or names unknown hosts.
    """
    if request["request"] in QUICK:
        raise RequestError(f"field request: expecting a shorter line for {request['request']}")
    if request["request"] == "tree":
        tree = generation.tree
        hosts = generation.routes.fabric.hosts
        return {"hosts": hosts, "parent": tree.parent.tolist(), "height": tree.height.tolist()}
    names = _hosts(request, bounds)
    fields = request.get("fields", ["fabric"])
    if not isinstance(fields, list) or not all(isinstance(field, str) and field in FIELDS for field in fields):
        raise RequestError(f"field fields: expecting some of {', '.join(FIELDS)}, got {_short(fields)}")
    repeated = next((field for at, field in enumerate(fields[: len(FIELDS) + 1]) if field in fields[:at]), None)
    if repeated:
        raise RequestError(f"field fields: expecting each of them once, got {repeated} again")
    routes = generation.part(names)
    _check_size(routes, fields, bounds)
    view = TopologyInterface.place(routes.fabric.hosts, routes)
    answer: dict[str, object] = {"hosts": routes.fabric.hosts, "digest": generation.digest}
    return answer | {field: FIELDS[field](view, routes) for field in fields}


def _hosts(request: dict[str, object], bounds: Bounds) -> list[str] | None:
    hosts = request.get("hosts")
    if hosts is None:
        return None
    names = expand(hosts) if isinstance(hosts, str) else hosts  # not read_hosts, which opens files
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise RequestError(f"field hosts: expecting names or a host list, got {_short(hosts)}")
    if len(names) > bounds.hosts:
        raise RequestError(f"field hosts: expecting at most {bounds.hosts:,} hosts, got {len(names):,}")
    return names


def _check_size(routes: Routes, fields: list[str], bounds: Bounds) -> None:
    count = routes.fabric.num_hosts
    matrices = [field for field in fields if field in _MATRICES]
    if matrices and count > bounds.matrix_hosts:
        raise RequestError(f"field {matrices[0]}: expecting at most {bounds.matrix_hosts:,} hosts, got {count:,}")
    if "fabric" in fields and routes.num_entries > bounds.entries:
        got = f"{routes.num_entries:,}: ask for fewer hosts"
        raise RequestError(f"field fabric: expecting at most {bounds.entries:,} entries of routes, got {got}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fabric(view: TopologyInterface, routes: Routes) -> dict[str, object]:
    table = {"engine": routes.engine, "next_link": routes.next_link.tolist()}
    return {**document_of(routes.fabric), "routes": table}


def _leaves(view: TopologyInterface, routes: Routes) -> list[str | None]:
    leaf = [] if view.host_routes is None else view.host_routes.leaf.tolist()
    return [routes.fabric.switch_ids[switch] if switch >= 0 else None for switch in leaf]


def _rates(view: TopologyInterface, routes: Routes) -> list[float | None]:
    rates: FloatArray = np.empty(0) if view.host_routes is None else view.host_routes.rates
    return [None if np.isnan(rate) else rate for rate in rates.tolist()]


def _levels(view: TopologyInterface, routes: Routes) -> list[dict[str, object]]:
    return [{"name": level.name, "cluster": level.cluster.tolist()} for level in view.levels]


def _paths(view: TopologyInterface, routes: Routes) -> list[list[list[int]]]:
    """Numbers of the links on the path from each host to each host, without padding."""
    paths: NDArray[np.int32] = view.get_network_path_matrix()
    return [[[link for link in path if link >= 0] for path in row] for row in paths.tolist()]


_MATRICES = ("hops", "paths", "levels")
FIELDS: dict[str, Callable[[TopologyInterface, Routes], object]] = {
    "fabric": _fabric,
    "hops": lambda view, routes: view.hop_matrix.tolist(),
    "paths": _paths,
    "leaves": _leaves,
    "rates": _rates,
    "levels": _levels,
    "sharing": lambda view, routes: view.sharing_groups,
}
