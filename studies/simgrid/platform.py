"""Writer of a network as SimGrid's platform file: hosts, directed links, and the route of every pair of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.inputs.writing import open_output
from topompi.schedules import Network

__all__ = ["SLOWER", "UNIT_WEIGHT", "equal_shares", "write_platform"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# SimGrid shares a link among flows in the inverse ratio of the sum over their routes of latency + UNIT_WEIGHT / rate.
# With a weight this large, latency has no effect on the shares.
UNIT_WEIGHT = 1e9
# Rates are divided by SLOWER, and latencies and all times of the platform are multiplied by it, because SimGrid prints
# times to the microsecond: a printed microsecond is then a nanosecond of the network.
SLOWER = 1000
HEAD = (
    "<?xml version='1.0'?>\n"
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1"><zone id="z" routing="Full">\n'
)
TAIL = "</zone></platform>\n"


def equal_shares(network: Network) -> tuple[Integers, Floats, Integers]:
    """Return additional links without contention, with which SimGrid shares every link equally among its flows.

    A switch serves its ports in turn, but SimGrid gives a flow with a longer route less of a link. Therefore every flow
    gets additional links of its own, none slower than its route, which raise its sum of 1 / rate to that of the longest
    route.

    :returns: number of the kind of additional links of each ordered pair of hosts, shape (n, n), -1 if the pair needs
        none; then, for each kind, the rate of each additional link in bytes/s, and the number of links in a row.
    """
    used = network.links >= 0
    inverse = np.where(used, 1 / network.capacity[network.links], 0.0)
    total, slowest = inverse.sum(axis=2), inverse.max(axis=2, initial=0.0)
    lack = np.where(total > 0, total.max(initial=0.0) - total, 0.0)
    lack[lack < 1e-9 * total.max(initial=0.0)] = 0.0
    count = np.ceil(lack / np.where(slowest > 0, slowest, 1.0) * (1 - 1e-9)).astype(np.int64)
    # What a pair lacks is rounded, because otherwise every pair of hosts would need a kind of its own.
    keys = np.stack((np.round(lack / max(total.max(initial=0.0), 1e-300) * 1e9).astype(np.int64), count), axis=-1)
    kinds, kind = np.unique(keys.reshape(-1, 2), axis=0, return_inverse=True)
    rate = kinds[:, 1] / np.maximum(kinds[:, 0] * 1e-9 * total.max(initial=0.0), 1e-300)
    return np.where(lack > 0, kind.reshape(lack.shape), -1), rate, kinds[:, 1]


def write_platform(network: Network, path: str | Path, loopback: tuple[float, float], fair: bool = True) -> None:
    """Write SimGrid's platform file of a network, with all times multiplied by ``SLOWER``.

    Host 3 is named ``h3``, link 3 is named ``l3``.

    All ranks of a host share its links into the fabric. Inside a host, every message has the loopback for itself.

    :param network: network with every rate and latency.
    :param path: path of the XML file.
    :param loopback: rate in bytes/s and latency in seconds of a message inside a host.
    :param fair: True if the flows on a link share it equally, see ``equal_shares``; False for SimGrid's own rule.

    Cost: a line of about 150 bytes for each ordered pair of hosts.
    """
    with open_output(path, encoding="ascii") as file:
        file.write(HEAD)
        for host in range(network.num_hosts):
            file.write(f'<host id="h{host}" speed="1Gf"/>\n' + _link(f"loop{host}", *loopback, "FATPIPE"))
        links = np.unique(network.links[network.links >= 0]).tolist()
        file.writelines(_link(f"l{i}", network.capacity[i], network.latency[i]) for i in links)
        kind, rate, count = equal_shares(network)
        kind = kind if fair else np.full_like(kind, -1)
        # Each sending host has additional links of its own, because SimGrid recomputes all flows with a common link
        # together, even if the link has no contention.
        for host, pad in np.argwhere((kind[:, :, None] == np.arange(len(rate))).any(axis=1)).tolist():
            file.writelines(_link(f"p{host}k{pad}n{i}", rate[pad], 0.0, "FATPIPE") for i in range(count[pad]))
        file.writelines(_routes(network, {link: _crossed(f"l{link}") for link in links}, kind, count))
        file.write(TAIL)


def _crossed(link: str) -> str:
    return f'<link_ctn id="{link}"/>'


def _link(name: str, rate: float, latency: float, policy: str = "SHARED") -> str:
    numbers = f'bandwidth="{rate / SLOWER:.17g}Bps" latency="{latency * SLOWER:.17g}s"'
    return f'<link id="{name}" {numbers} sharing_policy="{policy}"/>\n'


def _routes(network: Network, crossed: dict[int, str], kind: Integers, count: Integers) -> Iterator[str]:
    hosts = range(network.num_hosts)
    length = (network.links >= 0).sum(axis=2)
    for source in hosts:
        pads = ["".join(_crossed(f"p{source}k{pad}n{i}") for i in range(many)) for pad, many in enumerate(count)]
        begin, pads = f'<route src="h{source}" dst="h', [*pads, ""]
        yield f'{begin}{source}" symmetrical="NO">{_crossed(f"loop{source}")}</route>\n'
        rows = zip(hosts, network.links[source].tolist(), length[source].tolist(), kind[source].tolist(), strict=True)
        for destination, links, many, pad in rows:
            if many:
                way = "".join([crossed[link] for link in links[:many]])
                yield f'{begin}{destination}" symmetrical="NO">{way}{pads[pad]}</route>\n'
