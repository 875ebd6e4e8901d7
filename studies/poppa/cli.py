"""The studies of POPPA: ``python -m studies poppa model`` and others, each a module with ``main(arguments)``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]

STUDIES = {
    "model": "the source's table beside simulated jobs with phases; 12 x 12 pairs, 2 to 8 jobs on a node",
    "coverage": "intervals and errors of the estimates beside the truth, over caches, phases, speeds and lengths",
    "evict": "real pairs whose working sets empty each other's caches, with and without long shutters, on this machine",
    "pairs": "real pairs of kernels on this machine's cores: the shutter's estimates beside solo and shared runs",
    "recovery": "how long caches take to warm up after a stop, on this machine",
    "overhead": "the time that shutters of several lengths cost, on this machine, beside equations 9 and 10",
}


def main(arguments: Sequence[str]) -> int:
    """Run a study, the first argument.

    :param arguments: arguments after the source's name: the study, then its own.
    :returns: exit code; 2 if the study is unknown.
    """
    if not arguments or arguments[0] not in STUDIES:
        listed = "".join(f"\n  {name:<8} {about}" for name, about in STUDIES.items())
        print(f"studies poppa: expecting a study, got {[*arguments[:1]] or 'none'}; studies:{listed}", file=sys.stderr)
        return 2
    if arguments[0] in ("model", "coverage"):
        return int(import_module(f"studies.poppa.{arguments[0]}").main(arguments[1:]))
    return int(import_module("studies.poppa.real").main(arguments))
