"""Settings of the simulated network of ``topompi jobs replay``, ``lanes`` and ``characterise``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...machine.interference import InterferenceError
from ..inputs import settings_of
from ..quantities import BYTES, COUNT, FACTOR, RATE, SECONDS

if TYPE_CHECKING:
    from ...machine.interference import Thresholds

__all__ = ["MODELS", "LinkSettings"]

MODELS = ("flow", "packet")
_KNOWN = {
    "rate": (RATE, None),
    "latency": (SECONDS, 1e-7),  # that of the preset of packets fdr
    "overhead": (SECONDS, 0.0),
    "eager": (BYTES, 0),
    "buffer": (BYTES, 65_536),
    "hop-lanes": (COUNT, 1),
    "moderate": (FACTOR, None),
    "extreme": (FACTOR, None),
    "tries": (COUNT, 200),
}


@dataclass(frozen=True)
class LinkSettings:
    """Settings of links and hosts in any model, of the model of packets, and of the classes of jobs.

    :param rate: rate in GB/s of links of unknown rate; None to refuse them.
    :param latency: latency in seconds of links of unknown latency.
    :param overhead: time of a processor for each message that it sends, in seconds.
    :param eager: largest message in bytes whose send does not wait for its receiver.
    :param buffer: bytes of the buffer at each port of the packet model, for all lanes together.
    :param hop_lanes: number of virtual lanes of each service lane, among which packets rise hop by hop.
    :param moderate: least usage of a moderate job; None for the default.
    :param extreme: least usage of an extreme job; None for the default.
    :param tries: largest number of choices that a search for lanes simulates.
    """

    rate: float | None
    latency: float
    overhead: float
    eager: int
    buffer: int
    hop_lanes: int
    moderate: float | None
    extreme: float | None
    tries: int

    @classmethod
    def of(cls, settings: Sequence[str] | None) -> LinkSettings:
        """Return the settings that ``--set`` gives, and the defaults of the others.

        :param settings: values of ``--set``; None if there are none.
        """
        found = settings_of(settings, _KNOWN, InterferenceError)
        return cls(**{name.replace("-", "_"): value for name, value in found.items()})

    @property
    def known_rate(self) -> float | None:
        """Rate in bytes/s of links of unknown rate; None to refuse them."""
        return None if self.rate is None else self.rate * 1e9

    @property
    def thresholds(self) -> Thresholds:
        """The limits between the classes."""
        from ...machine.interference import Thresholds

        limits = {"moderate": self.moderate, "extreme": self.extreme}
        return Thresholds(**{name: limit for name, limit in limits.items() if limit is not None})
