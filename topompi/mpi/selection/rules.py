"""The rules file, which maps calls to algorithms: the first rule that matches and whose algorithm can run is used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import inf
from pathlib import Path
from reprlib import repr as short

from ...errors import TopompiError
from ...inputs import parse_json, read_text
from ...inputs.sizes import size_in
from ...schedules.registry import ALGORITHMS, current_name
from ...schedules.segments import can_be_cut, cut
from ...views.jobshape import JobShape
from ..execution.eligibility import why_not
from ..execution.specs import CALLS, COLLECTIVES, NATIVE, NO_NEEDS, Needs
from .choice import Choice

__all__ = ["Rule", "Rules", "RulesError"]

HEAD = {"format": "topompi rules", "version": 1}
RANGES = ("bytes", "ranks", "hosts", "ranks_per_host")
TEXTS = ("topology", "note")
FIELDS = ("algorithm", "methods", "collective", *RANGES, *TEXTS)

Range = tuple[float, float]
ANY: Range = (0, inf)


class RulesError(TopompiError, ValueError):
    """A rules file is malformed; the message names file, rule and field."""


@dataclass(frozen=True)
class Rule:
    """One rule: conditions on a call and its job, and the algorithm. A field that the file omits matches everything.

    :param algorithm: name of the algorithm to run.
    :param methods: mpi4py's names of the calls.
    :param nbytes: smallest and largest size in bytes. All calls of a size class are treated as calls of its smallest
        size.
    :param ranks: smallest and largest number of ranks.
    :param hosts: smallest and largest number of hosts.
    :param ranks_per_host: smallest and largest number of ranks on a host, which every host of the job must have.
    :param topology: the first 8 or more digits of the fingerprint of the job's network, or the topology source.
    :param note: text for human readers.
    """

    algorithm: str
    methods: frozenset[str] = frozenset(CALLS)
    nbytes: Range = ANY
    ranks: Range = ANY
    hosts: Range = ANY
    ranks_per_host: Range = ANY
    topology: str = ""
    note: str = ""

    def matches(self, method: str, nbytes: int, job: JobShape) -> bool:
        """Whether the rule matches a call in a job.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes.
        :param job: the job.
        """
        if method not in self.methods:
            return False
        ours = (self.nbytes, self.ranks, self.hosts, self.ranks_per_host, self.ranks_per_host)
        theirs = (nbytes, job.interface.num_ranks, job.interface.num_hosts, *job.ranks_per_host)
        inside = all(low <= number <= high for (low, high), number in zip(ours, theirs, strict=True))
        return inside and self._is_network_of(job)

    def _is_network_of(self, job: JobShape) -> bool:
        if self.topology in ("", job.interface.source):
            return True
        return re.fullmatch("[0-9a-f]{8,16}", self.topology) is not None and job.topology.startswith(self.topology)

    def to_json(self) -> dict[str, object]:
        """The rule as a JSON object of the file, without the fields that match everything."""
        bounds = zip(RANGES, (self.nbytes, self.ranks, self.hosts, self.ranks_per_host), strict=True)
        return {
            **({} if self.methods == frozenset(CALLS) else {"methods": sorted(self.methods)}),
            **{name: [low, None if high == inf else high] for name, (low, high) in bounds if (low, high) != ANY},
            **({"topology": self.topology} if self.topology else {}),
            "algorithm": self.algorithm,
            **({"note": self.note} if self.note else {}),
        }


@dataclass(frozen=True)
class Rules:
    """The rules of one file, in its order.

    :param name: path of the file.
    :param rules: the rules.
    """

    name: str
    rules: tuple[Rule, ...]

    @classmethod
    def read(cls, path: str | Path) -> Rules:
        """The rules in a file.

        :raises RulesError: if the file cannot be read or is malformed.
        """
        return cls.parse(read_text(path, RulesError, "rules"), str(path))

    @classmethod
    def parse(cls, text: str, name: str = "rules") -> Rules:
        """The rules in a text of the format that ``docs/rules.md`` describes.

        :raises RulesError: if the text is malformed.
        """
        data = parse_json(text, name, RulesError)
        if not isinstance(data, dict) or not HEAD.items() <= data.items():
            raise _refusal(name, f"an object with {json.dumps(HEAD)[1:-1]}", data)
        if not isinstance(data.get("rules"), list):
            raise _refusal(name, 'a list as "rules"', data.get("rules"))
        return cls(name, tuple(_rule(rule, f"{name}: rule {number}") for number, rule in enumerate(data["rules"], 1)))

    @cached_property
    def name_joint(self) -> bool:
        """Whether a rule names an algorithm whose schedule depends on siblings, communicators of the same ``Split``."""
        names = {cut(rule.algorithm)[0] for rule in self.rules}
        return any(one.joint for of_one in ALGORITHMS.values() for name, one in of_one.items() if name in names)

    def algorithms(self, method: str) -> Iterator[str]:
        """The algorithms of all rules that include a method, whatever the rules' other conditions."""
        return (rule.algorithm for rule in self.rules if method in rule.methods)

    def to_json(self, **facts: object) -> str:
        """The text of the file.

        :param facts: fields for human readers that are added to the file; they have no effect.
        """
        lines = ",\n".join("    " + json.dumps(rule.to_json()) for rule in self.rules)
        return json.dumps({**HEAD, **facts}, indent=2)[:-2] + f',\n  "rules": [\n{lines}\n  ]\n}}\n'

    def first(
        self, method: str, nbytes: int, job: JobShape, runs: Callable[[str], bool] = lambda algorithm: True
    ) -> tuple[int, Rule] | None:
        """The first matching rule whose algorithm can run a call, with its number from 1; None if there is none.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes.
        :param job: the job.
        :param runs: function of an algorithm's name; True if the algorithm can run the call.
        """
        return next((found for found in self.matching(method, nbytes, job) if runs(found[1].algorithm)), None)

    def matching(self, method: str, nbytes: int, job: JobShape) -> Iterator[tuple[int, Rule]]:
        """All rules that match a call, with their numbers from 1.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes.
        :param job: the job.
        """
        for number, rule in enumerate(self.rules, 1):
            if rule.matches(method, nbytes, job):
                yield number, rule

    def choice(self, method: str, nbytes: int, job: JobShape, runs: Callable[[str], bool]) -> Choice | None:
        """The choice by the first rule that matches a call and whose algorithm can run it; None if there is none.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes.
        :param job: the job.
        :param runs: function of an algorithm's name; True if the algorithm can run the call.
        """
        found = self.first(method, nbytes, job, runs)
        if found is None:
            return None
        number, rule = found
        return Choice(rule.algorithm, f"rules file {self.name}, rule {number}")

    def passed_over(
        self, method: str, nbytes: int, job: JobShape, runs: Callable[[str], bool], needs: Needs = NO_NEEDS
    ) -> str:
        """A text about the matching rules that are skipped because their algorithms cannot run, with the reasons.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes.
        :param job: the job.
        :param runs: function of an algorithm's name; True if the algorithm can run the call.
        :param needs: needs of a reduction's operation: operands in rank order, whole vectors, both or neither.
        :returns: the text; "" if the first matching rule can run.
        """
        said = []
        for number, rule in takewhile(lambda found: not runs(found[1].algorithm), self.matching(method, nbytes, job)):
            reason = why_not(method, rule.algorithm, needs) or "no communicators were split off together"
            said.append(f"rule {number} of {self.name} passed over, {rule.algorithm} cannot run: {reason}")
        return "; ".join(said)


def _refusal(place: str, wanted: str, got: object) -> RulesError:
    return RulesError(f"{place}: expecting {wanted}, got {short(got)}")


def _rule(data: object, place: str) -> Rule:
    if not isinstance(data, dict):
        raise _refusal(place, "an object", data)
    for name, value in data.items():
        if name not in FIELDS:
            raise _refusal(place, f"fields of {', '.join(FIELDS)}", name)
        if name in TEXTS and not isinstance(value, str):
            raise _refusal(f"{place}: {name}", "a string", value)
    methods = _methods(data, place)
    algorithm = _algorithm(data.get("algorithm"), methods, f"{place}: algorithm")
    if "methods" in data:
        _require_runs(methods, algorithm, f"{place}: algorithm")
    nbytes, ranks, hosts, per_host = (_range(data.get(name), f"{place}: {name}") for name in RANGES)
    topology, note = (data.get(name, "") for name in TEXTS)
    return Rule(algorithm, methods, nbytes, ranks, hosts, per_host, topology, note)


def _methods(data: Mapping[str, object], place: str) -> frozenset[str]:
    """The methods that a rule names, or all methods of the collective that it names."""
    if "methods" in data and "collective" in data:
        raise RulesError(f"{place}: expecting methods or collective, got both")
    field = "collective" if "collective" in data else "methods"
    known = sorted(COLLECTIVES) if field == "collective" else list(CALLS)
    given = data.get(field, known)
    names = given if field == "methods" and isinstance(given, list) else [given]
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise _refusal(f"{place}: {field}", f"one of {', '.join(known)}", wrong if names is given else given)
    return frozenset(method for method, spec in CALLS.items() if method in names or spec.collective in names)


def _algorithm(given: object, methods: frozenset[str], place: str) -> str:
    """The algorithm's name in a rule, which at least one of its methods must have."""
    known = {NATIVE}.union(*(ALGORITHMS.get(CALLS[method].collective, {}) for method in methods))
    name = current_name(given) if isinstance(given, str) else ""
    if name not in known and not any(can_be_cut(CALLS[method].collective, name) for method in methods):
        wanted = f"one of {', '.join(sorted(known))}, or one of your own that schedules.register has registered before"
        raise _refusal(place, wanted, given)
    return name


def _require_runs(methods: frozenset[str], algorithm: str, place: str) -> None:
    """Raise RulesError if an algorithm can never run a call that its rule names."""
    for method in sorted(methods):
        reason = why_not(method, algorithm)
        if reason:
            raise _refusal(place, f"one that can run {method} ({reason})", algorithm)


def _range(data: object, place: str) -> Range:
    """The bounds in a field: a number, or [smallest, largest] with null for no bound; sizes may be texts like 64K."""
    if data is None:
        return ANY
    pair = data if isinstance(data, list) else [data, data]
    if len(pair) != 2:
        raise _refusal(place, "a number or [smallest, largest]", data)
    low, high = (bound if one is None else _number(one, place) for one, bound in zip(pair, ANY, strict=True))
    if low > high:
        raise _refusal(place, "the smallest first", data)
    return low, high


def _number(value: object, place: str) -> int:
    number = size_in(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
        raise _refusal(place, 'a whole number from 0 to 2^63 - 1, such as 1024 or "1K"', value)
    return number
