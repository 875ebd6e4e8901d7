"""Jobs that share nodes: how much each loses beside the others, fair prices, and accounts.

``read_records`` reads a log of the shutter, ``groups_of`` collects the windows of a job, and ``estimate`` gives its
performance beside others. ``price`` and ``bill`` turn this into prices, and a ``Ledger`` keeps budgets and charges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...inputs.extensions import when_used

if TYPE_CHECKING:
    from .errors import ColocationError
    from .estimates.estimators import Estimate, estimate
    from .estimates.records import Records, groups_of, read_records
    from .prices.accounts import Ledger
    from .prices.billing import Bill, bill
    from .prices.rules import Price, Run, price

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
        "Ledger": "prices.accounts",
        **dict.fromkeys(("Bill", "bill"), "prices.billing"),
        "ColocationError": "errors",
        **dict.fromkeys(("Estimate", "estimate"), "estimates.estimators"),
        **dict.fromkeys(("Price", "Run", "price"), "prices.rules"),
        **dict.fromkeys(("Records", "groups_of", "read_records"), "estimates.records"),
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
