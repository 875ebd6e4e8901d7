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
    rows = list(blocks)
    above = {block.name: block.name for block in blocks}  # block -> topmost switch so far
    sizes = dict.fromkeys(above, 1)
    for names, place in sorted(aggregates, key=lambda one: len(one.blocks)):
        strange = [name for name in names if name not in above]
        parts = dict.fromkeys(above[name] for name in names if name in above)
        if strange or sum(sizes[part] for part in parts) != len(names):
            got = f"{strange[0]}, which is no block" if strange else f"{compress(names)}, a part of another"
            problem(FabricError(f"{place}: expecting aggregated blocks of whole blocks, got {got}"))
        elif len(parts) > 1:
            rows.append(_joined(compress(names) if len(names) < len(above) else BLOCK_TOP, list(parts), place))
            sizes[rows[-1].name] = len(names)
            above |= dict.fromkeys(names, rows[-1].name)
    tops = list(dict.fromkeys(above.values()))
    return [*rows, _joined(BLOCK_TOP, tops, blocks[0].place)] if len(tops) > 1 else rows


def _joined(name: str, parts: Sequence[str], place: str) -> SwitchRow:
    return SwitchRow(name, (), tuple(parts), place)
