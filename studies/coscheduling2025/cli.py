"""The command ``python -m studies coscheduling2025 NAME``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from ..tables import show_many

__all__ = ["STUDIES", "main"]

STUDIES = {  # modules of this folder, each with `tables`, and `draw` if it has pictures
    "rules": "labels of the rules, their accuracy, and the gain of pairing by them",
    "predict": "classifiers of pairs, alone and together, our model, and what to measure first",
    "schedule": "the source's experiments with co-schedulers: makespans, sizes of jobs, correlations",
    "mistakes": "a real log with wrong predictions, and with a network that jobs share",
}


def main(arguments: Sequence[str]) -> int:
    """Run a study of this source: print its tables, and put them into a page of a folder.

    :param arguments: name of the study, then ``-o DIR`` or ``--quick``.
    :returns: exit code; 2 if the study is unknown.
    """
    if not arguments or arguments[0] not in STUDIES:
        listed = "".join(f"\n  {name:<10} {words}" for name, words in STUDIES.items())
        print(f"studies coscheduling2025: expecting a study, got {arguments[:1] or 'none'}:{listed}", file=sys.stderr)
        return 2
    name, *others = arguments
    made = import_module(f"{__package__}.{name}")
    draw = getattr(made, "draw", None)
    page = "machine.md" if name in ("schedule", "mistakes") else "coscheduling.md"
    return show_many(f"coscheduling2025 {name}", page, made.tables, others, draw)
