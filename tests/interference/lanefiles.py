"""Patterns that find jobs, service levels and ports in the files that `jobs lanes` writes for OpenSM."""

import re

from topompi.machine.interference.lanes.membership import Member

__all__ = ["members_of_partitions", "members_of_policy"]


def members_of_policy(text: str) -> list[Member]:
    level_of = dict(re.findall(r"  qos-level\n    name: (\S+)\n    sl: (\d+)\n  end-qos-level\n", text))
    ports_of = dict(re.findall(r"  port-group\n    name: (\S+)\n((?:    port-guid: .*\n)*)  end-port-group\n", text))
    rule = r"  qos-match-rule\n    source: (\S+)\n    destination: \1\n    qos-level-name: (\S+)\n  end-"
    return [_member(name, level_of[level], ports_of[name]) for name, level in re.findall(rule, text)]


def members_of_partitions(text: str) -> list[Member]:
    return [_member(*found) for found in re.findall(r"^(\S+)=0x[0-9a-f]{4}, sl=(\d+) :\n([^;]*);$", text, re.MULTILINE)]


def _member(name: str, level: str, ports: str) -> Member:
    return Member(name, int(level), tuple(re.findall(r"\b0x[0-9a-f]+", ports)))
