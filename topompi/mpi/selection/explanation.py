"""The explanation, without MPI, of which algorithm would run for a call if nothing has been measured."""

from __future__ import annotations

import os
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from ...schedules.registry import ALGORITHMS
from ...topology import TopologyInterface
from ...views.jobshape import JobShape
from ..execution.eligibility import why_not
from ..execution.specs import CALLS
from ..prediction.machines import machine_from
from ..prediction.predictor import Predictor
from ..prediction.scope import unmodelled
from ..prediction.untuned import predict
from .choice import Choice
from .classes import class_bytes, middle_of, size_class
from .rules import Rules

if TYPE_CHECKING:
    from ..prediction.libraries.base import Library

__all__ = ["explain"]


def explain(
    interface: TopologyInterface,
    method: str,
    nbytes: int,
    root: int = 0,
    library: Library | None = None,
    rules: str | None = None,
    *,
    virtual: bool = False,
) -> dict[str, object]:
    """The algorithm that would run for a call, and the reason, as a dictionary for JSON.

    The keys ``algorithm`` and ``reason`` are always present. If the cost model decides, and not a rule, there are also
    ``predicted_at`` (the bytes for which times are predicted, as in a job: the middle of the class of sizes),
    ``native`` (the MPI library's algorithm and its predicted seconds, None if hosts have no route for it), ``default``
    (the algorithms that may run without a trial) and ``trial`` (the algorithm with the shortest predicted time of all).

    :param interface: the placement of the job's ranks, treated as real.
    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes, as rules count it.
    :param root: the root of a rooted collective.
    :param library: the model of the MPI library; if it is None, native is the fastest algorithm of all modelled
        libraries.
    :param rules: path of a rules file; None if there is none.
    :param virtual: True if the job's placement is virtual, so that the MPI library would run the call.
    :raises RulesError: if the rules file is malformed.
    :raises TopompiError: if ``TOPOMPI_MACHINE`` names no machine, or a malformed file.
    """
    collective = CALLS[method].collective

    def runs(algorithm: str) -> bool:
        return algorithm.partition("/")[0] in ALGORITHMS[collective]

    predictor = Predictor(interface, library, model=machine_from(os.environ))
    ruled, said = _by_rules(rules, method, nbytes, interface)
    middle = middle_of(size_class(nbytes))  # so does a communicator
    found = predict(predictor, method, middle, root, runs, always_native=True)
    if found.native is None or ruled:
        choice = ruled or found
        return {"algorithm": choice.algorithm, "reason": "; ".join(filter(None, (choice.reason, said)))}
    best = predictor.rank(method, middle, root, lambda name: runs(name) and not _joint(method, name))[0]
    known = found.native.seconds if isfinite(found.native.seconds) else None
    facts: dict[str, object] = {
        "operation": method,
        "bytes": nbytes,
        "predicted_at": middle,
        "job": interface.describe(),
        "native": {"algorithm": found.native.says, "seconds": known},
        "default": [{"algorithm": name, "seconds": seconds} for name, seconds in found.ours],
        "algorithm": found.algorithm,
        "reason": "; ".join(filter(None, (found.reason, said))),
        "trial": {"algorithm": best[0], "seconds": best[1]},
    }
    if virtual:
        facts["virtual"] = {"algorithm": "native", "reason": unmodelled(replace(interface, virtual=True))}
    return facts


def _by_rules(path: str | None, method: str, nbytes: int, interface: TopologyInterface) -> tuple[Choice | None, str]:
    """The choice by the first matching rule whose algorithm can run, or None, and a text about rules passed over."""
    if not path:
        return None, ""

    def runs(algorithm: str) -> bool:
        return not _joint(method, algorithm) and not why_not(method, algorithm)

    found, job, smallest = Rules.read(path), JobShape(interface, ""), class_bytes(size_class(nbytes))[0]
    return found.choice(method, smallest, job, runs), found.passed_over(method, smallest, job, runs)


def _joint(method: str, name: str) -> bool:
    found = ALGORITHMS[CALLS[method].collective].get(name)
    return found is not None and found.joint
