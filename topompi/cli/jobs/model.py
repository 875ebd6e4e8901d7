"""Options of the simulated network of ``topompi jobs replay`` and ``topompi jobs lanes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..quantities import BYTES, COUNT, RATE, SECONDS

__all__ = ["Links", "Model"]

WIRE = 1e-7  # seconds; that of the preset of packets fdr
MODELS = ("flow", "packet")


@dataclass(frozen=True)
class Links:
    """Options of links and hosts in any model.

    :param rate: rate in GB/s of links of unknown rate; None to refuse them.
    :param latency: latency in seconds of links of unknown latency.
    :param overhead: time of a processor for each message that it sends, in seconds.
    :param eager: largest message in bytes whose send does not wait for its receiver.
    """

    rate: Annotated[float | None, RATE("--rate", help="GB/s of links whose rate the source lacks.")] = None
    latency: Annotated[float, SECONDS("--latency", help="Seconds of links whose latency the source lacks.")] = WIRE
    overhead: Annotated[float, SECONDS("--overhead", help="Seconds of a processor for each message that it sends.")] = (
        0.0
    )
    eager: Annotated[int, BYTES("--eager", help="Bytes up to which a send does not wait.")] = 0

    @property
    def known_rate(self) -> float | None:
        """Rate in bytes/s of links of unknown rate; None to refuse them."""
        return None if self.rate is None else self.rate * 1e9


@dataclass(frozen=True)
class Model(Links):
    """Options of the simulated network.

    :param network: ``flow`` or ``packet``.
    :param lanes: number of virtual lanes of the packet model.
    :param hop_lanes: number of virtual lanes of each service lane, among which packets rise hop by hop.
    :param buffer: bytes of the buffer at each port of the packet model, for all lanes together.
    """

    network: Annotated[str, typer.Option("--network", help=f"Model of the network: {' or '.join(MODELS)}.")] = "flow"
    lanes: Annotated[int, COUNT("--lanes", help="Virtual lanes (packets); a job's is @lane=.")] = 1
    hop_lanes: Annotated[int, COUNT("--hop-lanes", help="Lanes of each service lane, by hop (dragonflies, tori).")] = 1
    buffer: Annotated[int, BYTES("--buffer", help="Bytes of a port's buffer (packets), all lanes.", min=1)] = 65536
