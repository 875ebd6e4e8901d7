"""Which algorithm runs for a call: rules file, then measured trial, then cost model; decided alike on all ranks.

``choice`` has the words of it; ``rules``, ``trial``, ``memory`` and ``model`` decide without MPI, and ``advisor``
weighs them at rank 0; ``selector`` is what a communicator holds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .choice import Choice

if TYPE_CHECKING:
    from .rules import Rule, Rules, RulesError
    from .selector import Selector

__all__ = ["Choice", "Rule", "Rules", "RulesError", "Selector"]


# Imported when asked for: rules do not need MPI, which the selector does, and one host needs neither.
_WHERE = {"Rule": ".rules", "Rules": ".rules", "RulesError": ".rules", "Selector": ".selector"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
