"""The kinds of numbers on the command line, each with its bounds, and parsing of sizes in bytes (64K, 1M)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import typer

from ..errors import TopompiError
from ..inputs.sizes import size_in

__all__ = [
    "BYTES",
    "COUNT",
    "FACTOR",
    "HOSTS",
    "MILLISECONDS",
    "PER_HOST",
    "RANKS",
    "RATE",
    "SECONDS",
    "SEED",
    "SHARE",
    "Quantity",
    "parse_bytes",
]


@dataclass(frozen=True)
class Quantity:
    """A kind of number; a call declares an option of this kind, or, without option names, an argument.

    :param least: least value.
    :param most: largest value.
    :param in_bytes: whether a text may have a unit, as for `parse_bytes`.
    """

    least: float
    most: float
    in_bytes: bool = False

    def __call__(self, *names: str, **settings: object) -> object:
        """Declare an option, or an argument if the first setting is ``argument=True``.

        :param names: names of the option; by default that of the parameter.
        :param settings: other settings of typer's; ``min`` and ``max`` narrow the bounds.
        """
        declared: Callable[..., object] = typer.Argument if settings.pop("argument", False) else typer.Option
        return declared(*names, **{"min": self.least, "max": self.most, "callback": _number, **settings})

    def parse(self, text: str, name: str, error: type[TopompiError]) -> float:
        """Convert the text of a setting to a number.

        :param text: the text.
        :param name: name of the setting, for the error message.
        :param error: class of the error that is raised if the text is no number within the bounds.
        """
        whole = isinstance(self.least, int)
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if not self.least <= value <= self.most:
            words = f"{'whole number' if whole else 'number'} from {self.least:g} to {self.most:g}"
            raise error(f"--set {name}: expecting a {words}, got {text!r:.60}")
        return value


def _number(value: float | None) -> float | None:
    if value is not None and math.isnan(value):  # no comparison with a bound refuses it
        raise typer.BadParameter("expecting a number, got nan")
    return value


RANKS = Quantity(1, (1 << 31) - 1)  # an int of MPI
HOSTS = Quantity(1, 1 << 24)
PER_HOST = Quantity(1, 1 << 16)  # ranks, slots or processors of a host; Slurm counts them with 16 bits
COUNT = Quantity(1, 10**9)
BYTES = Quantity(0, 1 << 50, in_bytes=True)
SECONDS = Quantity(0.0, 1e9)
MILLISECONDS = Quantity(0.0, 1e9)
RATE = Quantity(1e-9, 1e9)  # GB/s
FACTOR = Quantity(0.0, 1e9)  # ratio, price per unit
SHARE = Quantity(0.0, 1.0)
SEED = Quantity(0, (1 << 63) - 1)


def parse_bytes(text: str, option: str, error: type[TopompiError]) -> int:
    """Convert a size such as ``64``, ``8K`` or ``1M`` to bytes.

    :param text: a number of at least 1, with a unit or without (`topompi.inputs.sizes`).
    :param option: name of the option, for the error message.
    :param error: class of the error that is raised if the text has another form, or is too large.
    """
    size = size_in(text) or 0
    if not 1 <= size <= BYTES.most:
        raise error(f"{option}: expecting a number of bytes such as 64, 8K or 1M, got {text!r:.60}")
    return size
