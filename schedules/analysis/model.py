"""What messages cost by distance: the hierarchical alpha-beta model, its calibration and its closed forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, log2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import parse_json, read_text

__all__ = [
    "Model",
    "ModelError",
    "Rendezvous",
    "binomial_gather_bound",
    "topology_aware_gather_bound",
    "topology_aware_gather_gain",
]

Floats = NDArray[np.float64]
MOST_HOPS = 255  # no route is longer

# Subramoni 2013, table 1.1: latency in seconds by switches crossed, and the link's rate in bytes/s.
_TABLE = {
    "ranger": ({0: 0.46e-6, 1: 1.57e-6, 3: 2.45e-6, 5: 2.85e-6}, 8e9 / 8),
    "stampede": ({0: 0.19e-6, 1: 1.07e-6, 3: 1.76e-6, 5: 2.54e-6}, 54e9 / 8),
}

SLOWEST_INFINIBAND = 1e9  # bytes/s: 4 lanes of 2.5 Gbit/s, 8 bits in 10
ADAPTER = 0.3e-6  # seconds that a processor takes to hand a message to an adapter, fitted
MEMORY = 5e9  # bytes/s between ranks of one host, fitted
HEADERS = 1.04  # bytes on the wire for a byte of TCP in frames of 1,500
# Fitted: what a message takes of 16 ranks on 2 processors, and how it waits for its receiver's word in Open MPI.
_SOCKETS: dict[str, Any] = {"hops": (0, 1, 3, 5), "t_s": (20e-6, 200e-6, 210e-6, 220e-6), "t_o": 20e-6}
_WORD_BY_SOCKETS = (65_000, 0.8, 0.4)  # the first 64 KiB of a message and its header travel with the question


class ModelError(TopompiError, ValueError):
    """Measurements that make no model; the message names the file and what is wrong in it."""


def _read_measured(path: str) -> Any:
    return parse_json(read_text(path, ModelError, "a model"), path, ModelError)


@dataclass(frozen=True)
class Rendezvous:
    """How a long message waits for its receiver's word.

    The word travels behind what the receiver sends at the time. How far behind is the library's affair and that of the
    network: an adapter that answers by itself sends it at once.

    :param above: bytes; a longer message waits until its receiver is ready.
    :param same: of the time in which the receiver's messages of the step to the asking rank pass its link, the part
        that passes before the word is through; the two share a connection.
    :param others: likewise of its messages to other ranks.
    """

    above: int = 0
    same: float = 0.0
    others: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether words wait at all."""
        return self.same > 0 or self.others > 0


@dataclass(frozen=True)
class Model:
    """Start-up and per-byte cost of a message by distance: the levels of Subramoni 2013, section 3.

    :param hops: switches crossed at each level, ascending, 0 inside a host.
    :param t_s: seconds to start a message at each level.
    :param t_w: seconds a byte, between hosts that have the network's fastest links and share none of them.
    :param t_o: the part of ``t_s`` that keeps a processor busy, in seconds: a rank's next message starts after it. None
        for all of it, as the source has it.
    :param rendezvous: how long messages wait; in the source every message waits until both its ranks are ready.
    :param burst: bytes that a link at rest passes at once, as one does that a token bucket shapes; a wire has none.
    :raises ValueError: if the levels are none, not ascending, of different number, or a cost is negative.
    """

    hops: tuple[int, ...]
    t_s: tuple[float, ...]
    t_w: tuple[float, ...]
    t_o: float | None = None
    rendezvous: Rendezvous = Rendezvous()
    burst: int = 0

    def __post_init__(self) -> None:
        if not self.hops or not len(self.hops) == len(self.t_s) == len(self.t_w):
            raise ValueError("expecting t_s and t_w of each level, and at least one level")
        if min(self.hops) < 0 or (np.diff(self.hops) <= 0).any():
            raise ValueError(f"expecting levels of ascending hops, got {self.hops}")
        if not all(0 <= value < float("inf") for value in (*self.t_s, *self.t_w)):
            raise ValueError(f"expecting costs of at least 0 seconds, got t_s {self.t_s} and t_w {self.t_w}")

    @classmethod
    def preset(cls, name: str) -> Model:
        """A system of table 1.1 of the source: ``ranger`` or ``stampede``.

        The table has no cost of bytes by distance: it is that of the link everywhere, inside a host too.

        :raises ValueError: for another name.
        """
        if name not in _TABLE:
            raise ValueError(f"expecting one of {', '.join(_TABLE)}, got {name!r}")
        latency, rate = _TABLE[name]
        return cls(tuple(latency), tuple(latency.values()), (1 / rate,) * len(latency))

    @classmethod
    def of_rate(cls, rate: float) -> Model:
        """The model of a network by the rate of its fastest host links.

        From the four lanes of InfiniBand's first generation on: table 1.1's Stampede, whose adapters answer by
        themselves. Below: sockets over Ethernet, fitted to calls of Open MPI on 16 emulated hosts with links of 100
        Mbit/s (docs/lab/untuned.md); a byte takes as long there as it does with its share of the headers.

        :param rate: bytes/s.
        """
        if rate >= SLOWEST_INFINIBAND:
            preset = cls.preset("stampede")
            return replace(preset, t_w=(preset.t_w[0], *(1 / rate,) * (len(preset.hops) - 1)), t_o=ADAPTER)
        return cls(**_SOCKETS, t_w=(1 / MEMORY, *(HEADERS / rate,) * 3), rendezvous=Rendezvous(*_WORD_BY_SOCKETS))

    @classmethod
    def from_measured(cls, source: str | Path | Mapping[str, Any]) -> Model:
        """A model from measurements: ``{"levels": {"0": {"t_s": seconds, "t_w": seconds a byte}, "1": ...}}``.

        :param source: the mapping, or a JSON file that holds it; levels are named by their hops.
        :raises ModelError: saying which level or field is not as wanted.
        """
        place = "model" if isinstance(source, Mapping) else str(source)
        try:
            data = source if isinstance(source, Mapping) else _read_measured(place)
            levels = sorted((int(hops), level) for hops, level in data["levels"].items())
            hops, costs = [hop for hop, _ in levels], [level for _, level in levels]
            columns = [tuple(float(level[name]) for level in costs) for name in ("t_s", "t_w")]
        except ModelError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            wanted = '{"levels": {"HOPS": {"t_s": seconds, "t_w": seconds a byte}, ...}}'
            raise ModelError(f"{place}: expecting {wanted}, got {type(error).__name__}: {error}") from error
        if not all(isfinite(cost) for column in columns for cost in column) or max(hops, default=0) > MOST_HOPS:
            raise ModelError(f"{place}: expecting finite costs and at most {MOST_HOPS} hops, got others")
        try:
            return cls(tuple(hops), columns[0], columns[1])
        except ValueError as error:
            raise ModelError(f"{place}: {error}") from error

    @classmethod
    def fit(cls, samples: Iterable[tuple[int, float, float]]) -> Model:
        """The model that fits measured messages best, with no negative cost.

        Least squares of the relative error, level by level: large messages would else decide the start-up alone.

        :param samples: rows of hops, bytes, seconds (above 0).
        :raises ValueError: without samples, or for a time that is not above 0.
        """
        from scipy.optimize import nnls  # here, for its import takes longer than all else of this package

        table = np.array(list(samples), dtype=np.float64).reshape(-1, 3)
        if not len(table) or not (table[:, 2] > 0).all():
            raise ValueError("expecting samples of hops, bytes and seconds above 0")
        hops = np.unique(table[:, 0]).astype(int)
        costs = []
        for level in hops:
            size, seconds = table[table[:, 0] == level, 1:].T
            unit = max(size.max(), 1.0)
            terms = np.stack((np.ones_like(size), size / unit), axis=1) / seconds[:, None]
            solution, _ = nnls(terms, np.ones_like(size))
            costs.append((float(solution[0]), float(solution[1] / unit)))
        t_s, t_w = zip(*costs, strict=True)
        return cls(tuple(hops.tolist()), t_s, t_w)

    def as_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """What ``from_measured`` reads."""
        levels = zip(self.hops, self.t_s, self.t_w, strict=True)
        return {"levels": {str(hops): {"t_s": t_s, "t_w": t_w} for hops, t_s, t_w in levels}}

    def by_hops(self, most: int) -> tuple[Floats, Floats]:
        """Start-up and per-byte cost for 0 to ``most`` hops, each of shape (most + 1,).

        Linear between levels and, with the slope of the last two levels between hosts, beyond them, where cost never
        falls; below the first level it is the first's.
        """
        hops = np.arange(most + 1)
        outside = [level for level in range(len(self.hops)) if self.hops[level] > 0][-2:]
        tables = []
        for values in (self.t_s, self.t_w):
            table = np.interp(hops, self.hops, values)
            if len(outside) == 2:
                near, far = outside
                slope = (values[far] - values[near]) / (self.hops[far] - self.hops[near])
                table += max(slope, 0.0) * np.maximum(hops - self.hops[far], 0)
            tables.append(table)
        return tables[0], tables[1]


def binomial_gather_bound(
    t_s: float, t_w: float, exchanges: float, nbytes: float, *, delta: float = 1.0, contention: float = 1.0
) -> float:
    """Seconds that a binomial gather which ignores the switches takes at least (Subramoni 2013, section 3).

    ``T >= alpha (t_s C3 + N t_w C3 delta)``, with the costs of messages between switches.

    :param t_s: seconds to start a message between switches.
    :param t_w: seconds a byte between switches.
    :param exchanges: C3, exchanges between switches on the critical path; at worst the number of leaf switches.
    :param nbytes: N, bytes of one process.
    :param delta: how many processes' data one exchange carries; the source leaves it open.
    :param contention: alpha, at least 1.
    """
    return contention * (t_s * exchanges + nbytes * t_w * exchanges * delta)


def topology_aware_gather_bound(t_s: float, t_w: float, racks: int, nbytes: float, *, contention: float = 1.0) -> float:
    """Seconds that a gather over leaf switches' leaders takes at least (Subramoni 2013, section 3).

    ``T >= alpha (t_s log2 R + M t_w (1 - 1/R))``, with the costs of messages between switches.

    :param t_s: seconds to start a message between switches.
    :param t_w: seconds a byte between switches.
    :param racks: R, leaf switches.
    :param nbytes: M, aggregate bytes that the last leader gathers.
    :param contention: alpha, at least 1.
    """
    return contention * (t_s * log2(racks) + nbytes * t_w * (1 - 1 / racks))


def topology_aware_gather_gain(racks: int) -> float:
    """R / log2 R, how much less start-up the topology-aware gather has where the blind one crosses switches R times.

    :raises ValueError: below two leaf switches.
    """
    if racks < 2:
        raise ValueError(f"expecting at least two leaf switches, got {racks}")
    return racks / log2(racks)
