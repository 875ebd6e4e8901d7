"""Blocks of Slurm's plugin ``topology/block`` as switches: blocks, aggregated blocks, and one switch above all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...errors import FabricError, SourceError
from ..hostlist import compress
from .switches import Problem, SwitchRow

__all__ = ["BLOCK_TOP", "Aggregate", "aggregated", "join_blocks"]

BLOCK_TOP = "topology/block"  # name of the switch above all blocks; unique, because no name in a file has a slash


class Aggregate(NamedTuple):
    """Several blocks that Slurm treats as one larger block.

    :param blocks: names of the blocks.
    :param place: ``file:line`` that says it.
    """

    blocks: tuple[str, ...]
    place: str


def aggregated(blocks: Sequence[str], sizes: Sequence[str], place: str, problem: Problem) -> Iterator[Aggregate]:
    """Yield the aggregated blocks that Slurm makes of ``BlockSizes``: neighbours in the order of the file.

    A size of so many times the first one joins as many blocks. The last aggregate of a level may have fewer blocks, and
    is left out if a smaller size joins them already.

    :param blocks: names of the blocks in the order of the file.
    :param sizes: the sizes in nodes, as written; the first one is that of a block.
    :param place: ``file:line`` of the sizes.
    :param problem: function that is called with an error if Slurm would refuse the sizes.
    """
    counts = [int(size) if size.isascii() and size.isdecimal() and len(size) < 10 else 0 for size in sizes]
    first = counts[0] if counts else 1
    times = sorted({count // first for count in counts} if first else ())
    if not all(counts) or any(count % first for count in counts) or any(one & (one - 1) for one in times):
        wanted = "BlockSizes in nodes, each a power of two times the first"
        problem(SourceError(f"{place}: expecting {wanted}, got {','.join(sizes)}"))
        return
    smaller = 1
    for many in times:
        for begin in range(0, len(blocks), many) if smaller < len(blocks) else ():
            if len(part := blocks[begin : begin + many]) > smaller:
                yield Aggregate(tuple(part), place)
        smaller = many


def join_blocks(blocks: Sequence[SwitchRow], aggregates: Sequence[Aggregate], problem: Problem) -> list[SwitchRow]:
    """Return the blocks, which count as leaf switches, a switch per aggregate, and one above all if there are several.

    :param blocks: the blocks, with their nodes.
    :param aggregates: the aggregated blocks, in any order.
    :param problem: function that is called with an error if an aggregate has an unknown block, or only a part of
        another aggregate.
    """
    tree = _Tree(blocks)
    for names, place in sorted(aggregates, key=lambda one: len(one.blocks)):
        strange = [name for name in names if name not in tree.top]
        parts = dict.fromkeys(tree.top[name] for name in names if name in tree.top)
        if strange or sum(tree.blocks[part] for part in parts) != len(names):
            got = f"{strange[0]}, which is no block" if strange else f"{compress(names)}, a part of another"
            problem(FabricError(f"{place}: expecting aggregated blocks of whole blocks, got {got}"))
        elif len(parts) > 1:
            tree.join(compress(names) if len(names) < len(tree.top) else BLOCK_TOP, names, place)
    if len(set(tree.top.values())) > 1:
        tree.join(BLOCK_TOP, list(tree.top), blocks[0].place)
    return tree.rows


class _Tree:
    """Blocks and the switches above them so far.

    :param blocks: the blocks.
    :ivar rows: definitions of the blocks and of all switches.
    :ivar top: block -> topmost switch above it.
    :ivar blocks: topmost switch -> number of blocks below it.
    """

    def __init__(self, blocks: Sequence[SwitchRow]) -> None:
        self.rows = list(blocks)
        self.top = {block.name: block.name for block in blocks}
        self.blocks = dict.fromkeys(self.top, 1)
        self._height = dict.fromkeys(self.top, 1)

    def join(self, name: str, blocks: Sequence[str], place: str) -> None:
        """Put a switch above the topmost switches of some blocks."""
        parts = list(dict.fromkeys(self.top[block] for block in blocks))
        height = max(self._height[part] for part in parts)
        children = tuple(self._raised(part, height, place) for part in parts)
        self.rows.append(SwitchRow(name, (), children, place))
        self._height[name], self.blocks[name] = height + 1, len(blocks)
        self.top |= dict.fromkeys(blocks, name)

    def _raised(self, part: str, height: int, place: str) -> str:
        """Put single switches above a lower part, so that hops count levels for its blocks as for the others."""
        name = part
        for level in range(self._height[part], height):
            self.rows.append(SwitchRow(f"{part}/{level}", (), (name,), place))
            name = self.rows[-1].name
        return name
