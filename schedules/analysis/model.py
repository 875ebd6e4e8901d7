"""The hierarchical alpha-beta model of message costs by distance, its calibration, and formulas for gathers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
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
]

Floats = NDArray[np.float64]
MOST_HOPS = 255  # most switches crossed by a route

# Subramoni 2013, table 1.1: latency in seconds by switches crossed, and the link's rate in bytes/s.
_TABLE = {
    "ranger": ({0: 0.46e-6, 1: 1.57e-6, 3: 2.45e-6, 5: 2.85e-6}, 8e9 / 8),
    "stampede": ({0: 0.19e-6, 1: 1.07e-6, 3: 1.76e-6, 5: 2.54e-6}, 54e9 / 8),
}

SLOWEST_INFINIBAND = 1e9  # bytes/s: 4 lanes of 2.5 Gbit/s, 8 bits in 10
ADAPTER = 0.3e-6  # fitted time in seconds that a processor needs to pass a message to an adapter
MEMORY = 5e9  # fitted rate in bytes/s between ranks of one host
HEADERS = 1.04  # bytes on the wire per byte of TCP payload, with frames of 1,500 bytes
# Fitted to 16 ranks on 2 processors: start-up times, and the wait for the receiver's clearance in Open MPI.
_SOCKETS: dict[str, Any] = {"hops": (0, 1, 3, 5), "t_s": (20e-6, 200e-6, 210e-6, 220e-6), "t_o": 20e-6}
# The parameters of `Rendezvous`. Messages of up to 65,000 bytes do not wait, because the request to send carries the
# first 64 KiB of a message and its header.
_WORD_BY_SOCKETS = (65_000, 0.8, 0.4)


class ModelError(TopompiError, ValueError):
    """Measurements from which no model can be made; the error message names the file and the fault."""


def _read_measured(path: str) -> Any:
    return parse_json(read_text(path, ModelError, "a model"), path, ModelError)


@dataclass(frozen=True)
class Rendezvous:
    """The wait of a long message for its receiver's clearance to send.

    The clearance queues behind messages that the receiver is sending. How long it waits depends on library and network;
    network adapters that grant clearances without the processor's help send it at once.

    :param above: size in bytes; a message that is longer waits until its receiver is ready.
    :param same: fraction, of the time that the receiver's messages to the waiting rank take in this step, that passes
        before the clearance arrives, because these messages share a connection with it.
    :param others: fraction, of the time that the receiver's messages to other ranks take in this step, that passes
        before the clearance arrives.
    """

    above: int = 0
    same: float = 0.0
    others: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether a clearance to send waits for messages that the receiver is sending."""
        return self.same > 0 or self.others > 0


@dataclass(frozen=True)
class Model:
    """Start-up and per-byte costs of a message by distance: the levels of Subramoni 2013, section 3.

    :param hops: switches crossed at each level, ascending; 0 inside a host.
    :param t_s: start-up time of a message at each level, in seconds.
    :param t_w: time per byte at each level, in seconds, between hosts with the network's fastest links and no sharing.
    :param t_o: part of ``t_s``, in seconds, that keeps a processor busy, after which a rank can start its next message.
        None if all of ``t_s`` does, as in the source.
    :param rendezvous: wait of long messages for their receivers; in the source every message waits for both ranks.
    :param burst: bytes that an idle link passes at once, as with a token bucket; 0 for a plain wire.
    :param t_r: time per byte, in seconds, that a rank needs to combine a received vector with its own; 0 in the source.
    :raises ValueError: if there are no levels, hops are not ascending, lengths differ, or a cost is negative.
    """

    hops: tuple[int, ...]
    t_s: tuple[float, ...]
    t_w: tuple[float, ...]
    t_o: float | None = None
    rendezvous: Rendezvous = Rendezvous()
    burst: int = 0
    t_r: float = 0.0

    def __post_init__(self) -> None:
        if not self.hops or not len(self.hops) == len(self.t_s) == len(self.t_w):
            raise ValueError("expecting t_s and t_w of each level, and at least one level")
        if min(self.hops) < 0 or (np.diff(self.hops) <= 0).any():
            raise ValueError(f"expecting levels of ascending hops, got {self.hops}")
        if not all(0 <= value < float("inf") for value in (*self.t_s, *self.t_w)):
            raise ValueError(f"expecting costs of at least 0 seconds, got t_s {self.t_s} and t_w {self.t_w}")
        if not all(0 <= value < float("inf") for value in (self.t_o or 0.0, self.t_r)):
            raise ValueError(f"expecting costs of at least 0 seconds, got t_o {self.t_o} and t_r {self.t_r}")

    @classmethod
    def preset(cls, name: str) -> Model:
        """The model of a system in table 1.1 of Subramoni 2013: ``ranger`` or ``stampede``.

        The table has one rate of links, and no costs per byte by distance. The cost per byte of this rate is therefore
        taken for all distances, including messages inside a host.

        :raises ValueError: if the name is unknown.
        """
        if name not in _TABLE:
            raise ValueError(f"expecting one of {', '.join(_TABLE)}, got {name!r}")
        latency, rate = _TABLE[name]
        return cls(tuple(latency), tuple(latency.values()), (1 / rate,) * len(latency))

    @classmethod
    def of_rate(cls, rate: float) -> Model:
        """The model of a network, chosen by the rate of its fastest host links.

        From 1 GB/s on, the rate of first-generation InfiniBand with four lanes, it is the model of Stampede in table
        1.1 of Subramoni 2013, without waits for clearances, because adapters grant them. For lower rates it is a model
        of sockets over Ethernet, fitted to calls of Open MPI on 16 emulated hosts with links of 100 Mbit/s
        (docs/lab/untuned.md); its cost per byte includes the bytes of headers.

        :param rate: rate in bytes/s.
        """
        if rate >= SLOWEST_INFINIBAND:
            preset = cls.preset("stampede")
            return replace(preset, t_w=(preset.t_w[0], *(1 / rate,) * (len(preset.hops) - 1)), t_o=ADAPTER)
        return cls(**_SOCKETS, t_w=(1 / MEMORY, *(HEADERS / rate,) * 3), rendezvous=Rendezvous(*_WORD_BY_SOCKETS))

    @classmethod
    def from_measured(cls, source: str | Path | Mapping[str, Any]) -> Model:
        """Read a model from measurements: ``{"levels": {"0": {"t_s": seconds, "t_w": seconds a byte}, "1": ...}}``.

        The fields ``t_o`` and ``t_r`` may be missing; other fields are ignored.

        :param source: mapping, or path of a JSON file with one; its levels are keyed by their hops.
        :raises ModelError: if a level or field is missing or has a wrong value; the message names it.
        """
        place = "model" if isinstance(source, Mapping) else str(source)
        try:
            data = source if isinstance(source, Mapping) else _read_measured(place)
            levels = sorted((int(hops), level) for hops, level in data["levels"].items())
            hops, costs = [hop for hop, _ in levels], [level for _, level in levels]
            columns = [tuple(float(level[name]) for level in costs) for name in ("t_s", "t_w")]
            t_o, t_r = data.get("t_o"), float(data.get("t_r", 0.0))
            t_o = None if t_o is None else float(t_o)
        except ModelError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            got = f"no field {error}" if isinstance(error, KeyError) else "a field of another type"
            wanted = '{"levels": {"HOPS": {"t_s": seconds, "t_w": seconds a byte}, ...}}'
            raise ModelError(f"{place}: expecting {wanted}, got {got}") from error
        if not all(isfinite(cost) for column in columns for cost in column) or max(hops, default=0) > MOST_HOPS:
            raise ModelError(f"{place}: expecting finite costs and at most {MOST_HOPS} hops, got others")
        try:
            return cls(tuple(hops), columns[0], columns[1], t_o, t_r=t_r)
        except ValueError as error:
            raise ModelError(f"{place}: {error}") from error

    @classmethod
    def fit(cls, samples: Iterable[tuple[int, float, float]]) -> Model:
        """Fit a model to measured messages, with no negative cost.

        It minimises squared relative errors, level by level, because otherwise large messages alone would determine the
        start-up time.

        :param samples: rows of hops, bytes and seconds (above 0).
        :raises ValueError: if there are no samples, or a time is not above 0.
        """
        from scipy.optimize import nnls  # imported late because it takes longer than all other imports of this package

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

    def as_dict(self) -> dict[str, object]:
        """The model as a mapping that ``from_measured`` reads."""
        levels = zip(self.hops, self.t_s, self.t_w, strict=True)
        found: dict[str, object] = {"levels": {str(hops): {"t_s": t_s, "t_w": t_w} for hops, t_s, t_w in levels}}
        optional = {"t_o": self.t_o, "t_r": self.t_r or None}
        return found | {name: value for name, value in optional.items() if value is not None}

    def by_hops(self, most: int) -> tuple[Floats, Floats]:
        """The start-up and per-byte costs in seconds for 0 to ``most`` hops, two arrays of shape (most + 1,).

        Costs are interpolated between levels. Beyond the last level they continue with the slope of the last two levels
        between hosts, but never fall. Below the first level they are those of the first.
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
