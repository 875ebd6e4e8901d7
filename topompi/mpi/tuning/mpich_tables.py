"""MPICH's tables of algorithms: read from the library, with other algorithms for one number of ranks, for its files.

A file replaces the whole table, so that it must have all of the library's own rules too. They are in the library as
JSON: one table of algorithms, and one of compositions, which decide before it whether a call goes over hosts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ...errors import TopompiError
from ...inputs import parse_json, read_input
from ..prediction.libraries.mpich_forced import ALGORITHMS, PIPELINE
from ..prediction.librarychoices import LibraryChoice

__all__ = ["MPICHTableError", "MPICHTables", "find_library", "write_compositions", "write_table"]

NAMES = ("libmpi.so.12", "libmpi.so", "libmpich.so.12", "libmpich.so")
FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
LONGEST = 1 << 20  # bytes of a table
_START = re.compile(rb'\{\s*"collective=')
_NAME = re.compile(rb"MPIR_([A-Z][a-z_]+)_intra_([a-z_]+)")
# Compositions that run a call among all ranks, without regard to hosts; other collectives do so by default.
FLAT = {
    "bcast": "MPIDI_Bcast_intra_composition_gamma",
    "reduce": "MPIDI_Reduce_intra_composition_gamma",
    "allreduce": "MPIDI_Allreduce_intra_composition_beta",
}
# Conditions under which the library's own rules stay, each with its opposite.
_COMMUTES = ("is_commutative=no", "is_commutative=yes")
_VECTOR = (_COMMUTES, ("is_op_built_in=no", "is_op_built_in=yes"), ("count<pow2", "count=any"))
KEPT = {
    "alltoall": (("is_sendbuf_inplace=yes", "is_sendbuf_inplace=no"),),
    "reduce": _VECTOR,
    "allreduce": _VECTOR,
    "reduce_scatter": (_COMMUTES, ("is_block_regular=no", "is_block_regular=yes")),
    "reduce_scatter_block": (_COMMUTES,),
}

Tree: TypeAlias = dict[str, "Tree"]


class MPICHTableError(TopompiError, ValueError):
    """A library without MPICH's tables of algorithms."""


@dataclass(frozen=True)
class MPICHTables:
    """The tables of an MPICH library.

    :param algorithms: table of algorithms by collective.
    :param compositions: table of compositions by collective; empty if the library has none.
    :param names: pairs of collective and algorithm that the library has.
    """

    algorithms: Tree
    compositions: Tree
    names: frozenset[tuple[str, str]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> MPICHTables:
        """Read the tables from the file of a library.

        :raises MPICHTableError: if the file has no table of algorithms for blocking collectives.
        """
        data = read_input(path, MPICHTableError, "a library of MPICH")
        tables = list(_tables(data))
        names = {(a.decode().lower(), b.decode()) for a, b in _NAME.findall(data)}
        wanted = [f"collective={method.lower()}" for method in ALGORITHMS]
        whole = [table for table in tables if "algorithm=MPIR_" in json.dumps(table)]
        full = [table for table in whole if all("comm_type=intra" in table.get(name, ()) for name in wanted)]
        if not full:
            raise MPICHTableError(f"{path}: expecting a library of MPICH with its table of algorithms, got none")
        over = [
            table
            for table in tables
            if all(word in json.dumps(table.get(f"collective={name}", {})) for name, word in FLAT.items())
            and all("comm_type=intra" in table[f"collective={name}"] for name in FLAT)
        ]
        return cls(max(full, key=len), max(over, key=len, default={}), frozenset(names))

    def known(self, method: str) -> frozenset[str]:
        """The names of the algorithms that the library has for a method."""
        return frozenset(word for collective, word in self.names if collective == method.lower())


def find_library() -> Path:
    """The MPICH library beside the ``mpirun`` in PATH, else beside this Python.

    :raises MPICHTableError: if there is none.
    """
    launcher = shutil.which("mpirun")
    roots = [Path(launcher).parents[1], Path(launcher).resolve().parents[1]] if launcher else []
    for root in (*roots, Path(sys.prefix)):
        for path in (root / folder / name for folder in FOLDERS for name in NAMES):
            if path.is_file() and _has_table(path):
                return path
    raise MPICHTableError("expecting MPICH's mpirun in PATH, or --mpich-library FILE (libmpi.so.12), got neither")


def write_table(tables: MPICHTables, chosen: Sequence[LibraryChoice], ranks: int) -> str:
    """The table of algorithms with choices above the library's rules, for communicators of one size.

    :param tables: the library's tables.
    :param chosen: choices for several methods, for each by ascending size.
    :param ranks: number of ranks of the job.
    """
    return _written(tables.algorithms, chosen, ranks, list(ALGORITHMS), _algorithm)


def write_compositions(tables: MPICHTables, chosen: Sequence[LibraryChoice], ranks: int) -> str:
    """The table of compositions in which chosen calls run among all ranks.

    :param tables: the library's tables.
    :param chosen: choices for several methods, for each by ascending size.
    :param ranks: number of ranks of the job.
    """
    flat = [method for method in ALGORITHMS if method.lower() in FLAT]
    return _written(
        tables.compositions, chosen, ranks, flat, lambda one: {f"composition={FLAT[one.method.lower()]}": {}}
    )


def _written(
    table: Tree,
    chosen: Sequence[LibraryChoice],
    ranks: int,
    methods: Sequence[str],
    leaf: Callable[[LibraryChoice], Tree],
) -> str:
    result = dict(table)
    for method in methods:
        of_method = [one for one in chosen if one.method == method]
        if any(one.number for one in of_method):
            name = f"collective={method.lower()}"
            own = table[name]["comm_type=intra"]
            here = _pruned(own, ranks)
            tree = _by_size(method, of_method, ranks, here, leaf)
            for kept, other in reversed(KEPT.get(method.lower(), ())):
                tree = {kept: here, other: tree}
            split = {f"comm_size<{ranks}": own, f"comm_size<={ranks}": tree, "comm_size=any": own}
            result[name] = {**table[name], "comm_type=intra": split}
    return json.dumps(result, indent=1) + "\n"


def _pruned(tree: Tree, ranks: int) -> Tree:
    """The rules that hold for a number of ranks, without conditions on it at the top.

    MPICH 5.0.2 tests these when it makes a communicator. Below a condition on a call it tests them at the call, and
    takes ``comm_size<8`` for ``comm_size<=8``.
    """
    if all(key.startswith("comm_hierarchy") for key in tree):
        return {key: _pruned(child, ranks) for key, child in tree.items()}
    if all(key.startswith("comm_size") for key in tree):
        for key, child in tree.items():
            least, size = key.startswith("comm_size<="), key.rpartition("<")[2].lstrip("=")
            if key == "comm_size=any" or (key == "comm_size=pow2" and ranks.bit_count() == 1):
                return _pruned(child, ranks)
            if size.isdigit() and (ranks < int(size) or (least and ranks == int(size))):
                return _pruned(child, ranks)
    return tree


def _by_size(
    method: str, chosen: Sequence[LibraryChoice], ranks: int, own: Tree, leaf: Callable[[LibraryChoice], Tree]
) -> Tree:
    """The rules of a method by ascending size: the library's own ones below, between and from twice the last size."""
    size = "total_msg_size" if method in ("Allgather", "Reduce_scatter", "Reduce_scatter_block") else "avg_msg_size"
    times = ranks if method == "Allgather" else 1
    rows = [(one.nbytes * times, leaf(one) if one.number else own) for one in chosen]
    rows = [(0, own), *rows, (2 * rows[-1][0], own)]
    tree: Tree = {}
    for (_, rule), after in zip(rows, [*rows[1:], None], strict=True):
        if after is None:
            tree[f"{size}=any"] = rule
        elif after[1] != rule:
            tree[f"{size}<{after[0]}"] = rule
    return tree


def _algorithm(one: LibraryChoice) -> Tree:
    word = ALGORITHMS[one.method][one.number - 1]
    settings = [f"chunk_size={one.segment}", "tree_type=kary", "k=1", "is_non_blocking=0", "recv_pre_posted=0"]
    return {f"algorithm=MPIR_{one.method}_intra_{word}": {name: {} for name in settings if word == PIPELINE}}


def _tables(data: bytes) -> Iterator[Tree]:
    for start in _START.finditer(data):
        text = data[start.start() : start.start() + LONGEST].split(b"\0", 1)[0].decode("utf-8", "replace")
        try:
            table = parse_json(text, "table", MPICHTableError)
        except MPICHTableError:
            continue
        if _is_tree(table):
            yield table


def _is_tree(node: object, depth: int = 0) -> bool:
    return isinstance(node, dict) and depth < 50 and all(_is_tree(child, depth + 1) for child in node.values())


def _has_table(path: Path) -> bool:
    try:
        MPICHTables.read(path)
    except MPICHTableError:
        return False
    return True
