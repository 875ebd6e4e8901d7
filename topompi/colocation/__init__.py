"""Jobs that share nodes: how much each loses beside the others, fair prices, and accounts.

``read_records`` reads a log of the shutter, ``groups_of`` collects the windows of a job, and ``estimate`` gives its
performance beside others. ``price`` and ``bill`` turn this into prices, and a ``Ledger`` keeps budgets and charges.
``overhead`` has the cost of the shutter, and ``model`` simulates jobs with phases, whose true performance is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extensions import when_used

if TYPE_CHECKING:
    from .accounts import Ledger
    from .billing import Bill, bill
    from .errors import ColocationError
    from .estimators import Estimate, estimate
    from .prices import Price, Run, price
    from .records import Records, groups_of, read_records

__all__ = [
    "Bill",
    "ColocationError",
    "Estimate",
    "Ledger",
    "Price",
    "Records",
    "Run",
    "bill",
    "estimate",
    "groups_of",
    "price",
    "read_records",
]

# Imported at first use, because accounts need no numpy.
__getattr__ = when_used(
    __name__,
    {
        "Ledger": "accounts",
        **dict.fromkeys(("Bill", "bill"), "billing"),
        "ColocationError": "errors",
        **dict.fromkeys(("Estimate", "estimate"), "estimators"),
        **dict.fromkeys(("Price", "Run", "price"), "prices"),
        **dict.fromkeys(("Records", "groups_of", "read_records"), "records"),
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
