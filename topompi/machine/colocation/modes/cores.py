"""The cores that a job uses on each node in a mode of execution."""

from __future__ import annotations

from dataclasses import dataclass

from ....topology.inside import Inside
from ....topology.inside.cpus import lowest, numbers_of
from ..errors import ColocationError

__all__ = ["MODES", "Core", "NodeCores", "RankCores", "cores_of", "node_of", "place"]

# Mode -> the cores of a node that a job uses.
MODES = {
    "compact": "all cores",
    "spread": "half of the cores of each package; the others stay idle",
    "striped": "half of the cores of each package; the others run another job",
    "exclusive": "half of the packages; the others run another job",
}


@dataclass(frozen=True)
class Core:
    """A core of a node.

    :ivar package: number of its package, from 0.
    :ivar number: number of the core in its package, from 0.
    :ivar cpu: the system's number of its first hardware thread, on which a rank runs.
    """

    package: int
    number: int
    cpu: int


@dataclass(frozen=True)
class NodeCores:
    """The cores of a node by package.

    :ivar packages: cores of each package, in the order of their CPUs.
    """

    packages: tuple[tuple[Core, ...], ...]

    @classmethod
    def of(cls, *sizes: int) -> NodeCores:
        """Return a node whose CPUs are numbered package by package.

        :param sizes: number of cores of each package.
        """
        starts = [sum(sizes[:at]) for at in range(len(sizes))]
        packages = [
            tuple(Core(at, number, start + number) for number in range(size))
            for at, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]
        return cls(tuple(packages))

    @property
    def size(self) -> int:
        """Number of cores."""
        return sum(map(len, self.packages))


@dataclass(frozen=True)
class RankCores:
    """The places of a job's ranks: rank r is on node r // k, on core r % k of k.

    :ivar mode: name of the mode.
    :ivar processes: number of ranks.
    :ivar cores: the k cores that the job may use on each node.
    :ivar idle: number of cores per node that nobody else may use.
    :ivar shared: number of cores per node that another job may use.
    """

    mode: str
    processes: int
    cores: tuple[Core, ...]
    idle: int
    shared: int

    @property
    def nodes(self) -> int:
        """Number of nodes; the last one may be used in part."""
        return -(-self.processes // len(self.cores))

    def of_rank(self, rank: int) -> tuple[int, Core]:
        """Return the node, from 0, and the core of a rank.

        :param rank: the rank.
        """
        return rank // len(self.cores), self.cores[rank % len(self.cores)]


def node_of(inside: Inside) -> NodeCores:
    """Return the cores of a node. A rank uses a core as a whole: its other hardware threads stay with it.

    Without known packages, all cores count as one package; without known cores, each CPU is one.

    :param inside: the inside of the node, for example from hwloc XML.
    :raises ColocationError: if a core belongs to no package.
    """
    cores = [part.cpus for part in inside.cores] or [1 << cpu for cpu in numbers_of(inside.cpus)]
    packages = [part.cpus for part in inside.packages if part.cpus] or [inside.cpus]
    of_package: list[list[int]] = [[] for _ in packages]
    for core in cores:
        home = next((at for at, cpus in enumerate(packages) if core & cpus), None)
        if home is None:
            raise ColocationError(f"{inside.source}: expecting core {lowest(core)} in a package, got it in none")
        of_package[home].append(lowest(core))
    filled = [sorted(cpus) for cpus in of_package if cpus]
    return NodeCores(
        tuple(tuple(Core(at, number, cpu) for number, cpu in enumerate(cpus)) for at, cpus in enumerate(filled))
    )


def cores_of(node: NodeCores, mode: str, second: bool = False) -> tuple[Core, ...]:
    """Return the cores of a node that a job uses in a mode, package by package.

    Of a package with an odd number of cores, the first job gets the larger half in packages 0, 2, ... and the second
    job in packages 1, 3, ..., so that their numbers of cores differ by at most one if packages are equal.

    :param node: the node.
    :param mode: one of ``MODES``.
    :param second: whether the job is the second of the two that share the node.
    :raises ColocationError: if the mode is unknown, or the node is too small for it.
    """
    if mode not in MODES:
        raise ColocationError(f"expecting a mode of {', '.join(MODES)}, got {mode!r}")
    if mode == "compact":
        return tuple(core for package in node.packages for core in package)
    if mode == "exclusive":
        if len(node.packages) < 2:
            raise ColocationError("expecting a node of two packages or more for exclusive, got one")
        middle = -(-len(node.packages) // 2)
        chosen = node.packages[middle:] if second else node.packages[:middle]
        return tuple(core for package in chosen for core in package)
    made: list[Core] = []
    for at, package in enumerate(node.packages):
        middle = (len(package) + (at + 1) % 2) // 2
        made += package[middle:] if second else package[:middle]
    if not made:
        raise ColocationError(f"expecting a node of two cores or more for {mode}, got {node.size}")
    return tuple(made)


def place(node: NodeCores, mode: str, processes: int, second: bool = False) -> RankCores:
    """Return the places of a job's ranks on nodes of one kind.

    :param node: cores of each node.
    :param mode: one of ``MODES``.
    :param processes: number of ranks.
    :param second: whether the job is the second of the two that share the nodes.
    :raises ColocationError: if the mode is unknown, the node is too small for it, or there is no rank.
    """
    if processes < 1:
        raise ColocationError(f"expecting a positive number of ranks, got {processes}")
    cores = cores_of(node, mode, second)
    others = node.size - len(cores)
    idle = others if mode == "spread" else 0
    return RankCores(mode, processes, cores, idle, others - idle)
