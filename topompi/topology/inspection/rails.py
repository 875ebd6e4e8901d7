"""Selection of some adapters of a fabric's hosts, for example of the rails that carry a job's messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from ...errors import FabricError
from ..fabric import Fabric, infiniband_rate
from ..routes import Routes
from .without import cut

__all__ = ["select_rails"]

Mask = NDArray[np.bool_]
_WORDS = re.compile(r"(?P<none>!?)(?P<key>adapter|switch|host|rate)(?P<sign>[<>]?=)(?P<value>.+)")
_EXAMPLES = "adapter=mlx5_[0-7], switch=leaf*, host=gpu*, rate>=50 (GB/s or a name such as 4xNDR), or ! before one"


def select_rails(routes: Routes, words: Sequence[str], devices: Mapping[str, str]) -> Routes:
    """Keep the adapters that the conditions on every property select (device, leaf switch, host, rate).

    Several conditions on one property select the adapters that fulfil one or more of them. A condition with ``!``
    excludes the adapters that it matches. Hosts without adapters, and parts of the fabric without hosts, are left out.
    Computed routes are computed again.

    :param routes: the routes over the whole fabric.
    :param words: conditions ``adapter=PATTERN`` (device name or id), ``switch=PATTERN`` (name or id of the leaf
        switch), ``host=PATTERN`` and ``rate=GB/s``, also with ``>=`` or ``<=``; patterns are those of a shell.
    :param devices: device name of adapters, by id.
    :raises FabricError: if a condition is malformed, matches nothing, or no adapter is left.
    """
    if not words:
        return routes
    fabric = routes.fabric
    wanted: dict[str, Mask] = {}
    keep = np.ones(fabric.num_adapters, dtype=bool)
    for word in words:
        match = _WORDS.fullmatch(word.strip())
        if match is None:
            raise FabricError(f"--rails: expecting {_EXAMPLES}, got {word!r}")
        found = _matching(fabric, match, devices)
        if not found.any():
            raise FabricError(f"--rails: expecting a condition that some adapter fulfils, got {word!r}")
        if match["none"]:
            keep &= ~found
        else:
            wanted[match["key"]] = wanted.get(match["key"], np.zeros_like(found)) | found
    for found in wanted.values():
        keep &= found
    if not keep.any():
        raise FabricError(f"--rails: expecting conditions that some adapter fulfils, got {', '.join(words)}")
    return _restricted(routes, keep)


def _matching(fabric: Fabric, match: re.Match[str], devices: Mapping[str, str]) -> Mask:
    """Whether each adapter fulfils a condition, without its ``!``; shape (adapters,)."""
    key, sign, value = match["key"], match["sign"], match["value"]
    if key == "rate":
        return _rated(fabric, sign, value)
    if sign != "=":
        raise FabricError(f"--rails: expecting {key}=PATTERN, got {match[0]!r}")
    names: Callable[[int], tuple[str, ...]] = {
        "adapter": lambda adapter: (fabric.adapter_ids[adapter], devices.get(fabric.adapter_ids[adapter], "")),
        "host": lambda adapter: (fabric.hosts[fabric.adapter_host[adapter]],),
        "switch": lambda adapter: _switch_names(fabric, int(fabric.adapter_leaf[adapter])),
    }[key]
    return np.array(
        [any(fnmatchcase(name, value) for name in names(adapter)) for adapter in range(fabric.num_adapters)], dtype=bool
    )


def _switch_names(fabric: Fabric, switch: int) -> tuple[str, ...]:
    return (fabric.switch_names[switch], fabric.switch_ids[switch]) if switch >= 0 else ()


def _rated(fabric: Fabric, sign: str, value: str) -> Mask:
    try:
        rate = infiniband_rate(value) if "x" in value else float(value) * 1e9
    except ValueError:
        rate = float("nan")
    if np.isnan(rate):
        raise FabricError(f"--rails: expecting a rate in GB/s or a name such as 4xNDR, got {value!r}")
    has = np.append(fabric.link_rate, np.nan)[fabric.adapter_uplink]
    near: Mask = np.isclose(has, rate)
    beyond = {">=": has > rate, "<=": has < rate}
    return np.logical_or(near, beyond[sign]) if sign in beyond else near


def _restricted(routes: Routes, keep: Mask) -> Routes:
    fabric = routes.fabric
    adapters = np.concatenate([some[keep[some]] for some in fabric.host_adapters])
    hosts = np.unique(fabric.adapter_host[adapters])
    parts = np.unique(fabric.switch_component[fabric.adapter_leaf[adapters[fabric.adapter_leaf[adapters] >= 0]]])
    switch = np.isin(fabric.switch_component, parts)
    vertex = np.concatenate((keep, switch))
    links = np.flatnonzero(vertex[fabric.link_source] & vertex[fabric.link_target])
    return cut(routes, links, np.flatnonzero(switch), adapters, hosts)
