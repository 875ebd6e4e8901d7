"""The cluster that jobs run on: nodes, leaves, pods, and the links that jobs use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...network import Tables
from .errors import JobsError
from .isolation import JobRoutes, TableRoutes, TreeRoutes

__all__ = ["Cluster"]

Indices = NDArray[np.int32]
Made = TypeVar("Made")
MOST_SLOTS = 2**16 - 1
_REGULAR = re.compile(r"(?:leaves=)?([1-9][0-9]{0,6})(?:x([1-9][0-9]{0,6}))?(?:x([1-9][0-9]{0,6}))?")


@dataclass(frozen=True, eq=False)
class Cluster:
    """A cluster whose nodes are numbered leaf by leaf, and its leaves (nodes of one leaf switch) pod by pod.

    A pod is a set of leaves whose switches are joined by switches one level above.

    :param name: name of the cluster in messages.
    :param leaf_start: first node of each leaf and, last, the number of nodes, shape (leaves + 1,).
    :param pod_start: first leaf of each pod and, last, the number of leaves, shape (pods + 1,).
    :param hosts: names of the nodes; empty if they have none.
    :param routes: the routes, which give the directed links that a job on some nodes can use; if None, a link up and a
        link down per leaf and per pod are assumed.
    :param node_slots: number of slots (places for parts of jobs, for example cores) of each node, shape (nodes,); None
        if each node has one.
    :param part: number of each node's part, from 0, shape (nodes,), if the network has parts that no links join; None
        if every node reaches every other.
    """

    name: str
    leaf_start: Indices
    pod_start: Indices
    hosts: tuple[str, ...] = ()
    routes: JobRoutes | None = None
    node_slots: Indices | None = None
    part: Indices | None = None

    @classmethod
    def of(
        cls,
        name: str,
        leaf_sizes: ArrayLike,
        pod_leaves: ArrayLike,
        hosts: tuple[str, ...] = (),
        routes: JobRoutes | None = None,
    ) -> Cluster:
        """Make a cluster from the sizes of its leaves and pods.

        :param name: name of the cluster in messages.
        :param leaf_sizes: number of nodes of each leaf, 1 or more, shape (leaves,).
        :param pod_leaves: number of leaves of each pod, 1 or more, shape (pods,); the sum is the number of leaves.
        :param hosts: names of the nodes.
        :param routes: the routes, with the directed links that jobs use.
        :raises JobsError: if a number is below 1, or the sum does not match.
        """
        leaves, pods = np.asarray(leaf_sizes, dtype=np.int64), np.asarray(pod_leaves, dtype=np.int64)
        if not len(leaves) or leaves.min() < 1 or not len(pods) or pods.min() < 1:
            raise JobsError(f"{name}: expecting one or more leaves and pods of 1 or more, got {leaves} and {pods}")
        if pods.sum() != len(leaves):
            raise JobsError(f"{name}: expecting pods of {len(leaves)} leaves together, got {pods.sum()}")
        starts = [np.concatenate(([0], np.cumsum(sizes))).astype(np.int32) for sizes in (leaves, pods)]
        return cls(name, starts[0], starts[1], hosts, routes)

    @classmethod
    def regular(cls, nodes: int, leaf: int, leaves_per_pod: int | None = None) -> Cluster:
        """Make a cluster of equal leaves in equal pods; only the last leaf and the last pod may be smaller.

        :param nodes: number of nodes of the cluster.
        :param leaf: number of nodes per leaf.
        :param leaves_per_pod: number of leaves per pod; None if all leaves are in one pod.
        """
        if nodes < 1 or leaf < 1 or (leaves_per_pod is not None and leaves_per_pod < 1):
            raise JobsError(f"cluster: expecting 1 or more nodes, got {nodes} in leaves of {leaf}")
        leaves = np.diff(np.append(np.arange(0, nodes, leaf), nodes))
        each = leaves_per_pod or len(leaves)
        pods = np.diff(np.append(np.arange(0, len(leaves), each), len(leaves)))
        return cls.of(f"{nodes} nodes, leaves={leaf}x{each}", leaves, pods)

    @classmethod
    def parse(cls, text: str, nodes: int | None = None) -> Cluster:
        """Make a cluster from ``leaves=18x18`` (nodes per leaf, leaves per pod) or ``leaves=18x18x4`` (and pods).

        :param text: the specification.
        :param nodes: number of nodes of the cluster; needed if the specification does not contain the number of pods.
        :raises JobsError: if the text has another form, or the number of nodes is unknown.
        """
        match = _REGULAR.fullmatch(text.strip())
        if match is None:
            raise JobsError(f"cluster: expecting leaves=NODESxLEAVES such as leaves=18x18, got {text!r}")
        leaf, each = int(match[1]), int(match[2]) if match[2] else None
        if match[3]:
            nodes = leaf * int(match[2]) * int(match[3]) if nodes is None else nodes
        if nodes is None:
            whole = f"leaves={leaf}x{each or 3}x2"
            raise JobsError(
                f"cluster: expecting the number of nodes (--nodes 24), or of pods ({whole}), beside {text!r}, got none"
            )
        return cls.regular(nodes, leaf, each)

    def with_slots(self, slots: ArrayLike) -> Cluster:
        """Return the same cluster with other numbers of slots (units in which nodes are shared, for example cores).

        :param slots: number of slots of every node (a scalar), or of each node, shape (nodes,): 1 to 65,535.
        :raises JobsError: if a number is outside these limits, or the length is not the number of nodes.
        """
        each = np.asarray(slots)
        if each.dtype.kind not in "iu" or each.ndim > 1 or (each.ndim and len(each) != self.num_nodes):
            raise JobsError(f"{self.name}: expecting slots of {self.num_nodes} nodes, got {each.dtype} {each.shape}")
        if each.min() < 1 or each.max() > MOST_SLOTS:
            raise JobsError(f"{self.name}: expecting 1 to {MOST_SLOTS} slots a node, got {each.min()} to {each.max()}")
        return replace(self, node_slots=np.broadcast_to(each, self.num_nodes).astype(np.int32))

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.leaf_start[-1])

    @property
    def num_slots(self) -> int:
        """Number of slots of all nodes."""
        return self.num_nodes if self.node_slots is None else int(self.node_slots.sum())

    @cached_property
    def slots(self) -> Indices:
        """Number of slots of each node."""
        return np.ones(self.num_nodes, dtype=np.int32) if self.node_slots is None else self.node_slots

    @cached_property
    def slot_start(self) -> NDArray[np.int64]:
        """Cluster-wide number of each node's first slot and, last, the number of slots, shape (nodes + 1,)."""
        return np.concatenate(([0], np.cumsum(self.slots, dtype=np.int64)))

    @cached_property
    def node_of_slot(self) -> Indices:
        """Node of each slot of the cluster."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.slots)

    def slots_of(self, nodes: NDArray[np.integer], slots: NDArray[np.integer] | None = None) -> NDArray[np.int64]:
        """Return cluster-wide numbers of slots, node by node.

        :param nodes: nodes of the slots; without ``slots``, each node once.
        :param slots: number of a slot within the node, from 0, for each entry of ``nodes``, or -1 for all slots of the
            node; None for all slots of every node.
        """
        nodes = np.asarray(nodes, dtype=np.int64)
        if slots is not None and len(slots) and slots.min() >= 0:
            of_each: NDArray[np.int64] = self.slot_start[nodes] + slots
            return of_each
        each = self.slots[nodes] if slots is None else np.where(slots < 0, self.slots[nodes], 1)
        first = self.slot_start[nodes] + (0 if slots is None else np.maximum(slots, 0))
        ends = np.cumsum(each)
        return np.repeat(first - ends + each, each) + np.arange(ends[-1] if len(ends) else 0)

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_start) - 1

    @property
    def num_pods(self) -> int:
        """Number of pods."""
        return len(self.pod_start) - 1

    @cached_property
    def leaf(self) -> Indices:
        """Leaf of each node."""
        return np.repeat(np.arange(self.num_leaves, dtype=np.int32), np.diff(self.leaf_start))

    @cached_property
    def pod_of_leaf(self) -> Indices:
        """Pod of each leaf."""
        return np.repeat(np.arange(self.num_pods, dtype=np.int32), np.diff(self.pod_start))

    @cached_property
    def pod(self) -> Indices:
        """Pod of each node."""
        return self.pod_of_leaf[self.leaf]

    @cached_property
    def leaf_size(self) -> int:
        """Number of nodes of the largest leaf; a job of at most this size is small."""
        return int(np.diff(self.leaf_start).max())

    @cached_property
    def pod_size(self) -> int:
        """Number of nodes of the largest pod; a job of at most this size, if not small, is medium."""
        return int(np.diff(self.leaf_start[self.pod_start]).max())

    @cached_property
    def _derived(self) -> dict[Callable[[Cluster], object], Any]:
        return {}

    def derived(self, make: Callable[[Cluster], Made]) -> Made:
        """Return what a function makes of the cluster; it is made once and kept here, because policies keep nothing."""
        if make not in self._derived:
            self._derived[make] = make(self)
        made: Made = self._derived[make]
        return made

    @property
    def network(self) -> Tables | None:
        """Links and next-hop links of the fabric, with the nodes as hosts; None if the cluster has no fabric."""
        return self.routes.network if isinstance(self.routes, TableRoutes) else None

    @cached_property
    def links(self) -> JobRoutes:
        """The cluster's routes; if it has none, those with a link up and a link down per leaf and per pod."""
        return self.routes or TreeRoutes(self.leaf, self.pod)
