"""Other values for what is not published of the machines' networks."""

from __future__ import annotations

from dataclasses import replace

from .machines import MACHINES, Machine

__all__ = ["SWEEPS"]

Change = tuple[str, Machine]


def _rates(system: str, field: str, factor: float) -> tuple[Change, ...]:
    usual = MACHINES[system]
    rate = getattr(usual, field)
    return tuple(
        (f"{one / 1e9:,.0f} GB/s", replace(usual, **{field: one})) for one in (rate / factor, rate, rate * factor)
    )


def _near(system: str, *kinds: str) -> tuple[Change, ...]:
    return tuple((kind, replace(MACHINES[system], near=kind)) for kind in kinds)


# Machine, what is unknown, and three changes of which the second is the assumption.
SWEEPS: tuple[tuple[str, str, tuple[Change, ...]], ...] = (
    ("leonardo", "rate between a leaf switch and its cell", _rates("leonardo", "leaf", 4)),
    ("leonardo", "rate between two cells", _rates("leonardo", "between", 4)),
    ("lumi", "rate between two groups", _rates("lumi", "between", 16)),
    ("lumi", "hosts of one switch", _near("lumi", "host", "chassis", "group")),
    ("mare_nostrum", "rate between an island and the core", _rates("mare_nostrum", "between", 4)),
    ("mare_nostrum", "rate between a leaf switch and its island", _rates("mare_nostrum", "leaf", 4)),
    ("mare_nostrum", "hosts of one leaf switch", _near("mare_nostrum", "host", "rack", "group")),
    ("fugaku", "rate of a link", _rates("fugaku", "between", 1.5)),
)
