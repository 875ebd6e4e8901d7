"""Which algorithm runs for a call: rules file, then measured trial, then cost model; decided alike on all ranks.

``choice`` has the words of it; ``rules``, ``trial``, ``memory`` and ``model`` decide without MPI, and ``advisor``
weighs them at rank 0; ``selector`` is what a communicator holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .choice import Choice
from .rules import Rule, Rules, RulesError

if TYPE_CHECKING:
    from .selector import Selector

__all__ = ["Choice", "Rule", "Rules", "RulesError", "Selector"]


def __getattr__(name: str) -> Any:
    if name == "Selector":  # imports MPI, which rules do not need
        from .selector import Selector

        return Selector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
