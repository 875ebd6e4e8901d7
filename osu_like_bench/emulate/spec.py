"""Specification of an emulated network: switches and routes, from a shape or a topology source, with rates of links."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topompi.errors import SourceError
from topompi.inputs.hostlist import expand
from topompi.topology import Fabric, FabricBuilder, Routes, compute_routes, load_routes

__all__ = ["DEFAULT_RATE", "LinkRates", "emulated_fabric", "emulated_routes", "parse_rate"]

DEFAULT_RATE = 100e6 / 8  # bytes/s of a link by default, because two cores can carry this for sixteen hosts at once
FASTEST = 1e9 / 8  # maximum bytes/s of a link, because above it the processor is the bottleneck, not the link
SLOWEST = 64e3 / 8
MOST_HOSTS = 254
UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

_RATE = re.compile(r"\s*+([0-9]++(?:\.[0-9]++)?)\s*+([kKMG]?)(?:bit)?(?:/s)?\s*+")
_SHAPE = re.compile(r"\s*[0-9]{1,4}(?:\s*[x,;]\s*[0-9]{1,4})*\s*")
_ENTRY = re.compile(r"\s*+((?:[^=\[\],]|\[[^\]]*\])++)=([^,=]++)(?:,|$)")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NUMBERED = re.compile(r"((?:.*[^0-9])?)0*([1-9][0-9]*+|0)")


def parse_rate(text: str, option: str) -> float:
    """Convert a rate in bits/s (``100M``, ``25Mbit``, ``1.5G``) to bytes/s.

    :param text: the rate.
    :param option: name of the option, for the error message.
    :raises SourceError: if the text is not a rate from 64 kbit/s to 1 Gbit/s.
    """
    match = _RATE.fullmatch(text)
    rate = float(match[1]) * UNITS[match[2].replace("K", "k")] / 8 if match else math.nan
    if not SLOWEST <= rate <= FASTEST:
        raise SourceError(f"{option}: expecting bits/s from 64k to 1G, such as 100M, got {text!r}")
    return rate


@dataclass(frozen=True)
class LinkRates:
    """The rates of links, in bytes/s, that a user asks for; a rate that is None stays as in the topology source.

    :param host: rate of every host link.
    :param uplinks: rates of the links above switches, by level from the leaves up; the last rate is also that of all
        higher levels.
    :param hosts: rate of a host's link by host name, or by a range ``h0-h7``; overrides ``host``.
    """

    host: float | None = None
    uplinks: Sequence[float] = ()
    hosts: Mapping[str, float] | None = None

    @classmethod
    def parse(cls, host: str | None = None, uplinks: str | None = None, hosts: str | None = None) -> LinkRates:
        """Parse rates from the texts of the command line.

        :param host: rate of every host link, ``100M``.
        :param uplinks: rates by level from the leaves up, ``100M,400M``.
        :param hosts: rates of some hosts' links, ``h0-h7=100M,h8-h15=50M``.
        :raises SourceError: if a text is malformed; the message names the option.
        """
        return cls(
            None if host is None else parse_rate(host, "--host-rate"),
            () if uplinks is None else tuple(parse_rate(part, "--uplink-rate") for part in uplinks.split(",")),
            None if hosts is None else _host_rates(hosts),
        )


def emulated_fabric(spec: str, rates: LinkRates | None = None) -> Fabric:
    """Return the fabric to emulate, see ``emulated_routes``."""
    return emulated_routes(spec, rates).fabric


def emulated_routes(spec: str, rates: LinkRates | None = None) -> Routes:
    """Return the routes to emulate, and their fabric with a rate for every link.

    Parallel cables become one link with their total rate, because a switch has one route to each host.

    :param spec: ``4x4`` (leaves x hosts), ``2x4x4`` (groups x leaves x hosts), ``3,4,1,8`` (hosts of each leaf),
        ``3,4;1,8`` (hosts of each leaf in two groups), or a topology source, also one with loops, such as ``torus:8``.
    :param rates: rates that replace those of the source; a shape has 100 Mbit/s everywhere. If the fastest host link of
        a source exceeds 1 Gbit/s, it is slowed to 100 Mbit/s, and all links in proportion.
    :raises SourceError: if the spec cannot be read, hosts have no routes to each other, or it is too large.
    """
    routes = compute_routes(_of_shape(spec)) if _SHAPE.fullmatch(spec) else _merged(load_routes(spec))
    fabric = routes.fabric
    if fabric.num_hosts > MOST_HOSTS:
        raise SourceError(f"{spec}: expecting at most {MOST_HOSTS} hosts to emulate, got {fabric.num_hosts}")
    for host in fabric.hosts:
        if not _HOST.fullmatch(host):
            raise SourceError(f"{spec}: expecting host names that a machine can have, got {host!r}")
    _check_reach(routes)
    return replace(routes, fabric=_with_rates(_slowed(fabric), rates or LinkRates()))


def _of_shape(spec: str) -> Fabric:
    """Return the tree of a shape, with switch names as in synthetic fat trees."""
    groups = _leaf_sizes(spec)
    builder = FabricBuilder(spec.strip())
    levels = 3 if len(groups) > 1 else 2
    top = f"L{levels}/0"
    builder.add_switch(top)
    host = leaf = 0
    for group, sizes in enumerate(groups):
        above = top if levels == 2 else f"L2/{group}"
        if above != top:
            builder.add_switch(above)
            builder.add_cable(above, top, rate=DEFAULT_RATE)
        for size in sizes:
            switch = f"L1/{leaf}"
            builder.add_switch(switch)
            builder.add_cable(switch, above, rate=DEFAULT_RATE)
            for _ in range(size):
                builder.add_adapter(f"h{host:04d}", f"h{host:04d}")
                builder.add_cable(f"h{host:04d}", switch, rate=DEFAULT_RATE)
                host += 1
            leaf += 1
    return builder.build()


def _leaf_sizes(spec: str) -> list[list[int]]:
    """Return, for each group of a shape, the number of hosts of each leaf switch."""
    try:
        if "x" in spec:
            counts = [int(part) for part in spec.split("x")]
            if len(counts) > 3:
                raise ValueError
            *groups, leaves, hosts = counts
            sizes = [[hosts] * leaves for _ in range(groups[0] if groups else 1)]
        else:
            sizes = [[int(part) for part in group.split(",")] for group in spec.split(";")]
    except ValueError:
        wanted = "LEAVESxHOSTS, GROUPSxLEAVESxHOSTS, or the hosts of each leaf as 3,4,1 or 3,4;1,8"
        raise SourceError(f"SPEC: expecting {wanted}, got {spec!r}") from None
    if not sizes or not all(sizes) or min(map(min, sizes)) < 1:
        raise SourceError(f"SPEC: expecting at least one leaf, and one host on each, got {spec!r}")
    return sizes


def _merged(routes: Routes) -> Routes:
    """Return the routes over the fabric in which parallel links are one link of their total rate, without ports."""
    fabric = routes.fabric
    rails = fabric.num_adapters - fabric.num_hosts
    if rails:
        raise SourceError(
            f"{fabric.name}: expecting one adapter a host to emulate, got {rails} more adapters than hosts"
        )
    if np.isnan(fabric.link_rate).any():
        fabric = replace(fabric, link_rate=np.full(fabric.num_links, DEFAULT_RATE))
    ends = np.stack((fabric.link_source, fabric.link_target))
    pairs, inverse = np.unique(ends, axis=1, return_inverse=True)
    nowhere = np.zeros(pairs.shape[1], dtype=np.int32)
    merged = replace(
        fabric,
        link_source=pairs[0].astype(np.int32),
        link_target=pairs[1].astype(np.int32),
        link_source_port=nowhere,
        link_target_port=nowhere,
        link_rate=np.bincount(inverse.ravel(), weights=fabric.link_rate).astype(np.float64),
        link_latency=np.full(pairs.shape[1], np.nan),
    )
    if routes.engine.startswith("computed"):
        return compute_routes(merged)
    number = np.append(inverse.ravel(), -1).astype(np.int32)  # the last element is for link -1, "no link"
    return Routes(merged, routes.engine, number[routes.next_link[:1]])


def _slowed(fabric: Fabric) -> Fabric:
    """Return the fabric, its rates reduced in proportion if its fastest host link is too fast for the emulation."""
    fastest = float(fabric.link_rate[fabric.link_source < fabric.num_adapters].max(initial=0.0))
    if fastest <= FASTEST:
        return fabric
    return replace(fabric, link_rate=fabric.link_rate * (DEFAULT_RATE / fastest))


def _check_reach(routes: Routes) -> None:
    """Raise SourceError unless the routes lead from every host to every other one."""
    cut = np.argwhere(routes.tables.all_hops() < 0)
    if len(cut):
        source, target = (routes.fabric.hosts[int(one)] for one in cut[0])
        raise SourceError(
            f"{routes.fabric.name}: expecting routes between all hosts to emulate them, got none from {source} to "
            f"{target}"
        )


def _with_rates(fabric: Fabric, rates: LinkRates) -> Fabric:
    rate = fabric.link_rate.copy()
    host = np.minimum(fabric.link_source, fabric.link_target)  # the host of a host link
    is_host = host < fabric.num_adapters
    if rates.host is not None:
        rate[is_host] = rates.host
    if rates.uplinks:
        level = np.r_[np.full(fabric.num_adapters, -1), fabric.switch_level]
        lower = np.minimum(level[fabric.link_source], level[fabric.link_target])[~is_host]
        rate[~is_host] = np.array(rates.uplinks)[np.minimum(lower, len(rates.uplinks) - 1)]
    for name, wanted in (rates.hosts or {}).items():
        chosen = [int(fabric.host_adapters[index][0]) for index in _hosts_named(fabric, name)]
        rate[is_host & np.isin(host, chosen)] = wanted
    return replace(fabric, link_rate=rate)


def _host_rates(text: str) -> dict[str, float]:
    entries: dict[str, float] = {}
    position = 0
    while position < len(text):
        match = _ENTRY.match(text, position)
        if match is None:
            raise SourceError(f"--host-rates: expecting HOSTS=RATE,... such as h0-h7=100M, got {text[position:]!r}")
        if (name := match[1].strip()) in entries:
            raise SourceError(f"--host-rates: expecting each host list once, got {name!r} twice")
        entries[name] = parse_rate(match[2], "--host-rates")
        position = match.end()
    return entries


def _hosts_named(fabric: Fabric, name: str) -> list[int]:
    """Return the indices of the hosts that a host list or a range FIRST-LAST names; leading zeros may be omitted."""
    known = {_plain(host): index for index, host in enumerate(fabric.hosts)}
    first, dash, last = name.partition("-")
    if dash and "[" not in name:
        ends = [known.get(_plain(end.strip())) for end in (first, last)]
        if ends[0] is not None and ends[1] is not None and ends[0] <= ends[1]:
            return list(range(ends[0], ends[1] + 1))
    found = [known.get(_plain(host)) for host in expand(name)]
    missing = [host for host, index in zip(expand(name), found, strict=True) if index is None]
    if missing:
        raise SourceError(f"--host-rates: expecting hosts of {fabric.name} ({fabric.hosts[0]} ...), got {missing[0]!r}")
    return [index for index in found if index is not None]


def _plain(host: str) -> str:
    match = _NUMBERED.fullmatch(host)
    return f"{match[1]}{match[2]}" if match else host
