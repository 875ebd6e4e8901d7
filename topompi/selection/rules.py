"""The rules file: which algorithm runs for which calls of which jobs; the first rule that matches wins."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from ..errors import TopompiError
from ..schedules.registry import ALGORITHMS, current_name
from ..schedules.segments import can_be_cut, cut
from .classes import COLLECTIVE, LEVELS, NATIVE
from .job import Job

__all__ = ["FORMAT", "VERSION", "Rule", "Rules", "RulesError"]

FORMAT, VERSION = "topompi rules", 1
RANGES = ("bytes", "ranks", "hosts", "ranks_per_host")
FIELDS = ("algorithm", "methods", "collective", *RANGES, "topology", "note")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Range = tuple[float, float]
ANY: Range = (0, inf)


class RulesError(TopompiError, ValueError):
    """A rules file is malformed; the message names file, rule and field."""


@dataclass(frozen=True)
class Rule:
    """One rule; a field that it does not have matches everything.

    :param algorithm: what to run.
    :param methods: mpi4py's names of the calls.
    :param nbytes: smallest and largest size in bytes; a size class counts by its smallest size.
    :param ranks: smallest and largest number of ranks; likewise ``hosts``, and ``ranks_per_host`` for every host.
    :param topology: the fingerprint of the job's network, at least 8 digits of it, or the source it was read from.
    :param note: for people.
    """

    algorithm: str
    methods: frozenset[str] = frozenset(COLLECTIVE)
    nbytes: Range = ANY
    ranks: Range = ANY
    hosts: Range = ANY
    ranks_per_host: Range = ANY
    topology: str = ""
    note: str = ""

    def matches(self, method: str, nbytes: int, job: Job) -> bool:
        """Whether the rule matches a call of a method with ``nbytes`` bytes in a job.

        :param method: mpi4py's name of the call.
        :param nbytes: its size in bytes.
        :param job: the job.
        """
        fewest, most = job.ranks_per_host
        return (
            method in self.methods
            and _within(nbytes, self.nbytes)
            and _within(job.ranks, self.ranks)
            and _within(job.hosts, self.hosts)
            and self.ranks_per_host[0] <= fewest <= most <= self.ranks_per_host[1]
            and self._is_network_of(job)
        )

    def _is_network_of(self, job: Job) -> bool:
        if self.topology in ("", job.interface.source):
            return True
        return re.fullmatch("[0-9a-f]{8,16}", self.topology) is not None and job.topology.startswith(self.topology)

    def to_json(self) -> dict[str, Any]:
        """The rule as in the file, without the fields that match everything."""
        rule: dict[str, Any] = {}
        if self.methods != frozenset(COLLECTIVE):
            rule["methods"] = sorted(self.methods)
        bounds = zip(RANGES, (self.nbytes, self.ranks, self.hosts, self.ranks_per_host), strict=True)
        rule |= {
            name: [int(low), None if high == inf else int(high)] for name, (low, high) in bounds if (low, high) != ANY
        }
        if self.topology:
            rule["topology"] = self.topology
        rule["algorithm"] = self.algorithm
        return rule | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Rules:
    """The rules of one file, in its order.

    :param name: the file.
    """

    name: str
    rules: tuple[Rule, ...]

    @classmethod
    def read(cls, path: str | Path) -> Rules:
        """The rules in a file; raises RulesError, or OSError where it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise RulesError(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise RulesError(f"{path}: expecting JSON in UTF-8") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str = "rules") -> Rules:
        """The rules in a text of the format that ``docs/rules.md`` describes; raises RulesError."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RulesError(f"{name}: expecting JSON, got {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise RulesError(f'{name}: expecting an object with "format": "{FORMAT}" and "version": {VERSION}')
        rules = data.get("rules")
        if not isinstance(rules, list):
            raise RulesError(f'{name}: expecting a list as "rules", got {_short(rules)}')
        return cls(name, tuple(_rule(rule, f"{name}: rule {number}") for number, rule in enumerate(rules, 1)))

    @cached_property
    def name_joint(self) -> bool:
        """Whether one of them names an algorithm that is made together with the exchanges of siblings."""
        names = {cut(rule.algorithm)[0] for rule in self.rules}
        return any(one.joint for of_one in ALGORITHMS.values() for name, one in of_one.items() if name in names)

    def to_json(self, **facts: Any) -> str:
        """The text of the file; ``facts`` are written into it for its readers, and have no effect."""
        lines = ",\n".join("    " + json.dumps(rule.to_json()) for rule in self.rules)
        head = {"format": FORMAT, "version": VERSION, **facts}
        return json.dumps(head, indent=2)[:-2] + f',\n  "rules": [\n{lines}\n  ]\n}}\n'

    def first(
        self, method: str, nbytes: int, job: Job, runs: Callable[[str], bool] = lambda algorithm: True
    ) -> tuple[int, Rule] | None:
        """The first rule, with its number from 1, that matches a call and whose algorithm runs there.

        :param method: mpi4py's name of the call.
        :param nbytes: its size in bytes.
        :param job: the job.
        :param runs: whether an algorithm can run for the call.
        """
        for number, rule in enumerate(self.rules, 1):
            if rule.matches(method, nbytes, job) and runs(rule.algorithm):
                return number, rule
        return None


def _rule(data: Any, place: str) -> Rule:
    if not isinstance(data, dict):
        raise RulesError(f"{place}: expecting an object, got {_short(data)}")
    unknown = [name for name in data if name not in FIELDS]
    if unknown:
        raise RulesError(f"{place}: expecting fields of {', '.join(FIELDS)}, got {unknown[0]!r}")
    methods = _methods(data, place)
    algorithm = data.get("algorithm")
    algorithm = current_name(algorithm) if isinstance(algorithm, str) else algorithm
    _check_algorithm(algorithm, methods, place)
    nbytes, ranks, hosts, per_host = (_range(data.get(name), f"{place}: {name}") for name in RANGES)
    for name in ("topology", "note"):
        if not isinstance(data.get(name, ""), str):
            raise RulesError(f"{place}: {name}: expecting a string, got {_short(data[name])}")
    words = data.get("topology", ""), data.get("note", "")
    return Rule(str(algorithm), methods, nbytes, ranks, hosts, per_host, *words)


def _methods(data: Mapping[str, Any], place: str) -> frozenset[str]:
    if "methods" in data and "collective" in data:
        raise RulesError(f"{place}: expecting methods or collective, got both")
    if "collective" in data:
        methods = frozenset(method for method, collective in COLLECTIVE.items() if collective == data["collective"])
        if not methods:
            wanted = ", ".join(sorted(set(COLLECTIVE.values())))
            raise RulesError(f"{place}: collective: expecting one of {wanted}, got {_short(data['collective'])}")
        return methods
    named = data.get("methods", list(COLLECTIVE))
    names = [named] if isinstance(named, str) else named
    wrong = names if not isinstance(names, list) else [one for one in names if one not in list(COLLECTIVE)]
    if wrong or not names:
        wanted = ", ".join(COLLECTIVE)
        raise RulesError(f"{place}: methods: expecting some of {wanted}, got {_short(wrong)}")
    return frozenset(names)


def _check_algorithm(algorithm: Any, methods: frozenset[str], place: str) -> None:
    """An algorithm must be one that some method of its rule has."""
    known = {NATIVE, LEVELS}.union(*(ALGORITHMS.get(COLLECTIVE[method], {}) for method in methods))
    whole = isinstance(algorithm, str) and algorithm in known
    if not whole and not any(can_be_cut(COLLECTIVE[method], algorithm) for method in methods):
        raise RulesError(f"{place}: algorithm: expecting one of {', '.join(sorted(known))}, got {_short(algorithm)}")


def _range(data: Any, place: str) -> Range:
    """A number, or [smallest, largest] with null for no bound; sizes may be strings such as 64K."""
    if data is None:
        return ANY
    pair = data if isinstance(data, list) else [data, data]
    if len(pair) != 2 or (not isinstance(data, list) and data is None):
        raise RulesError(f"{place}: expecting a number or [smallest, largest], got {_short(data)}")
    low, high = (_number(value, bound, place) for value, bound in zip(pair, ANY, strict=True))
    if low > high:
        raise RulesError(f"{place}: expecting the smallest first, got {_short(data)}")
    return low, high


def _number(value: Any, bound: float, place: str) -> float:
    if value is None:
        return bound
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", value) if isinstance(value, str) else None
    if match is not None:
        return int(match[1]) * UNITS[match[2]]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RulesError(f'{place}: expecting a whole number of at least 0, such as 1024 or "1K", got {_short(value)}')
    return value


def _within(value: float, bounds: Range) -> bool:
    return bounds[0] <= value <= bounds[1]


def _short(value: Sequence[Any] | Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
