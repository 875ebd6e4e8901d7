"""The result of a probe, as a fabric that every command can read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...topology import Fabric, FabricBuilder
from ...topology.sources.fabricjson import document_of
from .rates import ProbedRates
from .search import FoundClusters

__all__ = ["Probed"]

# Seconds; if the shortest round trip is longer, the tree counts as not sure, because the time that a switch adds is
# then too small a part of a round trip.
SLOWEST = 80e-6
REMEDY = "let ranks poll (Open MPI: --mca mpi_yield_when_idle 0, MPICH: MPIR_CVAR_ENABLE_HEAVY_YIELD=0)"


@dataclass(frozen=True, eq=False)
class Probed:
    """A measured tree of hosts.

    :param hosts: names of the hosts.
    :param found: levels of the tree and their round trips.
    :param rates: rates of the links; None if they were not measured.
    :param seconds: duration of the probe in seconds.
    :param yielded: True if ranks slept while they waited for messages.
    """

    hosts: Sequence[str]
    found: FoundClusters
    rates: ProbedRates | None
    seconds: float
    yielded: bool = False

    @property
    def doubt(self) -> str:
        """The reason why the tree may be wrong, with a remedy; "" if it is sure."""
        shortest = float(self.found.round_trips.min())
        if self.yielded:
            return f"ranks slept while they waited for messages, which hides switches: {REMEDY}"
        if shortest > SLOWEST:
            took = f"{1e6 * shortest:.0f} us"
            return f"no round trip took less than {took}, which hides switches: take a faster transport, or {REMEDY}"
        return "" if self.found.settled else "give it more --seconds"

    @property
    def fabric(self) -> Fabric:
        """The tree as a fabric: one switch per cluster of each level, connected by single cables.

        The latency of a cable between two levels is a quarter of the round trip that the upper level adds. The latency
        of a host's cable is a quarter of the round trip between two hosts of a leaf switch, and includes software.
        """
        builder, levels, rates = FabricBuilder("probed"), self.found.levels, self.rates
        for number, level in enumerate(levels):
            for cluster in range(level.num_clusters):
                builder.add_switch(_name(number, cluster))
        latency = np.diff([0.0, *(level.round_trip for level in levels)]).clip(min=0.0) / 4
        for host, (name, leaf) in enumerate(zip(self.hosts, levels[0].cluster.tolist(), strict=True)):
            builder.add_adapter(name, name)
            _cable(builder, name, _name(0, leaf), np.nan if rates is None else rates.host[host], latency[0])
        for number, level in enumerate(levels[:-1]):
            for cluster in range(level.num_clusters):
                above = int(levels[number + 1].cluster[level.cluster == cluster][0])
                rate = np.nan if rates is None else rates.uplink[number][cluster]
                _cable(builder, _name(number, cluster), _name(number + 1, above), rate, latency[number + 1])
        return builder.build()

    def summary(self) -> dict[str, object]:
        """The measured numbers, for JSON: times in seconds, rates in bytes/s, levels from the leaf switches up."""
        found = self.found
        return {
            "hosts": len(self.hosts),
            "seconds": round(self.seconds, 3),
            "rounds": found.rounds,
            "probes": found.probes,
            "width": found.width,
            "settled": not self.doubt,
            "yielded": self.yielded,
            "doubt": self.doubt,
            "levels": [self._level(number) for number in range(len(found.levels))],
        }

    def document(self) -> str:
        """The text of a ``fabric.json`` file with the fabric, and with the summary in its field ``probe``."""
        return json.dumps(document_of(self.fabric) | {"probe": self.summary()}, separators=(",", ":"), allow_nan=False)

    def _level(self, number: int) -> dict[str, object]:
        level, rates = self.found.levels[number], self.rates
        row: dict[str, object] = {
            "clusters": level.num_clusters,
            "round_trip": level.round_trip,
            "confidence": round(level.confidence, 3),
        }
        if rates is not None and number < len(self.found.levels) - 1:
            row["uplinks_shared"] = sum(rates.shared[number])
        return row


def _name(level: int, cluster: int) -> str:
    return f"L{level + 1}/{cluster}"


def _cable(builder: FabricBuilder, lower: str, upper: str, rate: float, latency: float) -> None:
    for ends in ((lower, upper), (upper, lower)):
        builder.add_link(*ends, rate=float(rate), latency=float(latency))
