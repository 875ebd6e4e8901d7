"""Checks whether the circumstances of two runs allow a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from .record import Record

__all__ = ["cautions", "differences"]

TOPOLOGY = ("hosts", "virtual", "topology", "fabric")
CONDITIONS = ("background", "network")  # the entries of a record's ``about`` that affect times
Named = tuple[str, Record]


def differences(first: Named, second: Named, across: bool = False) -> list[str]:
    """Return the differences between two runs that forbid a comparison of their times, one line each with both values.

    :param first: name, by which the lines call it, and record of the first run.
    :param second: name, by which the lines call it, and record of the second run.
    :param across: True if the MPI libraries may differ in vendor.
    """
    (a, one), (b, other) = first, second
    # The MPI library's own collectives use no topology, so a record of them alone cannot differ in it.
    alone = not (one.facts.topology and other.facts.topology)
    ignored = {*TOPOLOGY * alone, *["MPI vendor"] * across}
    facts, others = _matters(one), _matters(other)
    lines = []
    for name in facts:
        if name not in ignored and facts[name] != others[name]:
            place, here, there = _unlike(facts[name], others[name])
            lines.append(f"{name}{place}: expecting the same, got {here} in {a} and {there} in {b}")
    return lines


def cautions(first: Named, second: Named) -> Iterator[str]:
    """Yield the differences and disturbances that a comparison should mention but that do not forbid it."""
    (a, one), (b, other) = (first[0], first[1].facts), (second[0], second[1].facts)
    versions = [("MPI", one.mpi, other.mpi)]
    names = sorted((one.versions.keys() | other.versions.keys()) - {"mpi"})  # compared above
    versions += [(name, one.versions.get(name, "none"), other.versions.get(name, "none")) for name in names]
    for name, here, there in versions:
        if here != there:
            yield f"Versions differ: {name}: {here} in {a}, {there} in {b}"
    if one.affinity != other.affinity:
        yield "Pinning differs: the ranks were allowed other CPUs"
    for name, facts in ((a, one), (b, other)):
        if facts.oversubscribed:
            yield f"Oversubscribed: {name}: times measure scheduling too"


def _matters(record: Record) -> dict[str, object]:
    facts, options = record.facts, record.options
    return {
        "arena": facts.arena,
        "benchmark": options.benchmark,
        "root": options.root or "0",
        "grid": options.grid or "none",
        "periodic": options.periodic,
        "faces": options.faces or "none",
        "ranks": facts.ranks,
        "nodes": facts.nodes,
        "hosts": facts.hosts,
        "virtual": facts.virtual,
        "topology": facts.topology,
        "fabric": facts.description,
        "CPU model": facts.cpu,
        "CPU count": facts.cpus,
        "MPI vendor": facts.mpi.rpartition(" ")[0],
        **{name: facts.about.get(name, "none") for name in CONDITIONS},
    }


def _unlike(one: object, other: object) -> tuple[str, str, str]:
    """Return the place of the difference, and both values; of per-rank values, those of the first rank that differs."""
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return "", repr(one), repr(other)
    if len(one) != len(other):
        return "", f"those of {len(one)} ranks", f"those of {len(other)}"
    ranks = [rank for rank, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    return f" of {len(ranks)} rank(s), first rank {ranks[0]}", repr(one[ranks[0]]), repr(other[ranks[0]])
