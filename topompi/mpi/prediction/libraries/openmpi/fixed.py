"""The fixed choices of Open MPI's component coll/tuned, 4.1 to 5.0: the algorithm by number of ranks and by size.

The thresholds are facts of ``ompi/mca/coll/tuned/coll_tuned_decision_fixed.c``, version 5.0.11. The size compared with
a threshold is the message of a broadcast; the vector of a reduction; one block of a gather, scatter, allgather or
alltoall; the mean block of an allgatherv; the whole vector of a reduce-scatter; one rank's result of
``Reduce_scatter_block``. The names of algorithms are the component's own, as ``ompi_info`` prints them.

These choices never use segments, and in a chain each rank has one child.
"""

from __future__ import annotations

from functools import cache

from .....inputs.sizes import size_in

__all__ = ["COMMUTATIVE", "ORDERED", "fixed_decision"]


def fixed_decision(method: str, ranks: int, nbytes: int, *, commutative: bool = True) -> str:
    """The component's name of the algorithm for a call.

    :param method: mpi4py's name of the call.
    :param ranks: number of ranks, at least 2.
    :param nbytes: the size in bytes that is compared with thresholds (the module's docstring lists it for each method).
    :param commutative: True if the operation of a reduction commutes.
    :raises KeyError: if the component leaves the call to other components.
    """
    table = COMMUTATIVE[method] if commutative or method not in ORDERED else ORDERED[method]
    row = next(row for least, row in reversed(_rows(table)) if least <= ranks)
    return next(word for least, word in reversed(row) if least <= nbytes)


@cache
def _rows(table: str) -> list[tuple[int, list[tuple[int, str]]]]:
    """The rows of a table, parsed: a least number of ranks, and pairs of least bytes and algorithm, both ascending."""
    rows: list[tuple[int, list[tuple[int, str]]]] = []
    words = table.replace(",", "").split()
    for word, behind in zip(words, [*words[1:], ""], strict=True):
        if word.endswith(":"):
            rows.append((int(word[:-1]), []))
        elif word[0].isdigit():
            rows[-1][1].append((size_in(word) or 0, behind))
    return rows


# In each row, the first number is the least number of ranks to which the row applies; pairs follow, each of a least
# size in bytes and the algorithm for calls of at least that size.
COMMUTATIVE = {
    "Bcast": """
        2: 0 pipeline, 32 binary_tree, 256 pipeline, 512 knomial, 1K basic_linear, 32K binary_tree, 128K chain,
            256K basic_linear, 512K binomial, 1M binary_tree
        4: 0 binary_tree, 64 binomial, 128 binary_tree, 2K binomial, 8K basic_linear, 1M chain
        8: 0 knomial, 8 binary_tree, 64 knomial, 4K binary_tree, 16K binomial, 32K basic_linear
        16: 0 knomial, 4K binomial, 1M scatter_allgather
        32: 0 binomial, 2K knomial
        64: 0 knomial
        128: 0 binomial, 2 binary_tree, 16K basic_linear, 32K binary_tree, 64K knomial
        256: 0 knomial, 16K split_binary_tree, 32K knomial
        1024: 0 knomial, 512K scatter_allgather
        2048: 0 knomial, 256K scatter_allgather
        4096: 0 knomial, 8K binary_tree, 16K knomial, 256K scatter_allgather
    """,
    "Gather": """
        2: 0 linear_sync, 2 basic_linear, 4 binomial, 32K basic_linear, 64K binomial, 128K linear_sync
        4: 0 binomial, 1K basic_linear, 8K binomial, 32K basic_linear, 256K linear_sync
        8: 0 binomial
        256: 0 binomial, 2K basic_linear, 8K binomial
        512: 0 binomial
    """,
    "Scatter": """
        2: 0 linear_nb, 2 basic_linear, 128K linear_nb, 256K basic_linear
        4: 0 binomial, 2K basic_linear, 4K binomial, 8K basic_linear, 32K linear_nb, 1M basic_linear
        8: 0 binomial, 16K linear_nb, 1M basic_linear
        16: 0 binomial, 16K basic_linear, 32K linear_nb
        32: 0 binomial, 512 linear_nb, 8K binomial, 16K linear_nb
        64: 0 binomial, 512 linear_nb
    """,
    "Allgather": """
        2: 0 two_proc
        3: 0 recursive_doubling
        32: 0 recursive_doubling, 1K neighbor, 64K ring
        64: 0 recursive_doubling, 512 neighbor, 64K ring
        128: 0 recursive_doubling, 512 neighbor, 128K ring, 512K neighbor, 1M ring
        256: 0 recursive_doubling, 32 bruck, 128 recursive_doubling, 1K neighbor, 128K ring, 512K neighbor, 1M
            ring
        512: 0 recursive_doubling, 64 bruck, 256 recursive_doubling, 2K neighbor
        1024: 0 recursive_doubling, 4 bruck, 8 recursive_doubling, 16 bruck, 32 recursive_doubling, 256 bruck,
            512 recursive_doubling, 4K neighbor
        2048: 0 bruck, 32 recursive_doubling, 128 bruck, 512 recursive_doubling, 4K neighbor
        4096: 0 recursive_doubling, 2 bruck, 8 recursive_doubling, 16 bruck, 512 recursive_doubling, 4K neighbor
    """,
    "Allgatherv": """
        2: 0 ring, 2K two_proc, 4K ring, 8K two_proc
        3: 0 default, 256 neighbor, 4K ring, 8K neighbor, 16K bruck, 256K neighbor
        8: 0 default, 1K bruck
        16: 0 default, 128 bruck, 256K ring
        32: 0 default, 256 bruck, 8K ring
        64: 0 default, 256 bruck, 4K ring
        128: 0 bruck, 1K neighbor, 64K ring
        256: 0 bruck, 1K ring
        512: 0 bruck, 512 default, 1K bruck, 4K neighbor, 1M ring
        1024: 0 bruck, 4K neighbor
    """,
    "Alltoall": """
        2: 0 pairwise, 2 two_proc, 4 pairwise, 16 two_proc, 64 pairwise, 256 two_proc, 4K pairwise, 32K
            linear_sync, 256K two_proc, 1M pairwise
        3: 0 linear_sync, 8K linear, 16K linear_sync, 64K linear, 512K pairwise, 1M linear
        8: 0 linear_sync, 256K linear
        16: 0 linear_sync, 4 modified_bruck, 512 linear_sync, 8K linear, 32K linear_sync, 256K linear, 512K
            linear_sync
        32: 0 modified_bruck, 512 linear, 512K linear_sync
        64: 0 modified_bruck, 1K linear, 2K linear_sync, 4K linear, 256K pairwise
        128: 0 modified_bruck, 1K linear_sync, 2K linear, 256K pairwise
        256: 0 modified_bruck, 1K linear_sync, 8K linear, 32K pairwise
        512: 0 modified_bruck, 512 linear_sync, 8K linear, 16K linear_sync, 128K linear, 256K pairwise
        1024: 0 modified_bruck, 512 linear_sync, 1K linear, 2K linear_sync, 16K linear, 256K linear_sync
        2048: 0 modified_bruck, 1K linear_sync, 4K linear, 8K linear_sync, 128K linear
        4096: 0 modified_bruck, 2K linear_sync, 8K linear, 16K linear_sync, 32K linear, 64K linear_sync
    """,
    "Alltoallv": """
        2: 0 pairwise
        4: 0 basic_linear
        64: 0 pairwise
        128: 0 basic_linear
        256: 0 pairwise
        1024: 0 basic_linear
    """,
    "Reduce": """
        2: 0 rabenseifner, 8 binary, 16 pipeline, 32 linear, 256K pipeline, 512K chain, 1M pipeline
        4: 0 binary, 4K chain, 64K binomial, 256K linear, 512K binomial, 1M linear
        8: 0 binary, 8K binomial
        16: 0 binary, 4K binomial
        32: 0 binomial
        256: 0 binomial, 8K in-order_binary, 16K binomial
        512: 0 binomial
        2048: 0 binomial, 512 in-order_binary, 1K binomial, 8K in-order_binary, 16K binomial
        4096: 0 binomial, 16 in-order_binary, 32 binomial, 1K in-order_binary, 2K binomial, 8K in-order_binary,
            16K binomial
    """,
    "Allreduce": """
        2: 0 ring, 8 recursive_doubling, 4K ring, 8K recursive_doubling, 16K ring, 64K segmented_ring, 256K
            rabenseifner
        4: 0 ring, 16 recursive_doubling, 8K rabenseifner
        8: 0 recursive_doubling, 8K rabenseifner
        16: 0 segmented_ring, 64 recursive_doubling, 4K rabenseifner
        32: 0 segmented_ring, 128 rabenseifner
        64: 0 recursive_doubling, 256K rabenseifner
        128: 0 nonoverlapping, 128K recursive_doubling, 256K rabenseifner
        256: 0 nonoverlapping, 4K rabenseifner
        512: 0 nonoverlapping, 2K recursive_doubling, 16K rabenseifner
        2048: 0 nonoverlapping, 2K segmented_ring, 4K recursive_doubling, 16K rabenseifner
        4096: 0 nonoverlapping, 2K segmented_ring, 16K recursive_doubling, 32K rabenseifner
    """,
    "Reduce_scatter": """
        2: 0 ring, 64K butterfly, 128K ring
        4: 0 non-overlapping, 8 recursive_halving, 256K ring
        8: 0 recursive_halving, 256K ring
        32: 0 non-overlapping, 64 recursive_halving, 2K butterfly, 512K ring
        64: 0 non-overlapping, 256 recursive_halving, 512 butterfly, 2K recursive_halving, 4K butterfly
        128: 0 non-overlapping, 256 recursive_halving, 512 butterfly
        256: 0 non-overlapping, 256 recursive_halving, 1K butterfly
        512: 0 non-overlapping, 512 recursive_halving, 2K butterfly, 8K recursive_halving, 16K butterfly
        1024: 0 non-overlapping, 512 recursive_halving, 4K butterfly, 16K recursive_halving, 32K butterfly
        2048: 0 non-overlapping, 512 recursive_halving, 4K butterfly
        4096: 0 non-overlapping, 1K recursive_halving, 8K butterfly
    """,
    "Reduce_scatter_block": """
        2: 0 recursive_doubling, 4 butterfly, 8 recursive_halving, 16 butterfly, 128 recursive_halving, 256
            butterfly, 4K recursive_halving, 8K butterfly, 128K basic_linear
        4: 0 recursive_halving, 8 recursive_doubling, 32 butterfly, 256 recursive_halving, 8K butterfly, 16K
            recursive_halving, 1M basic_linear
        8: 0 basic_linear, 4 recursive_halving, 32 butterfly, 128 recursive_halving, 512K basic_linear, 4M
            butterfly
        16: 0 basic_linear, 32 recursive_halving, 512K basic_linear, 2M recursive_halving, 4M butterfly
        32: 0 recursive_halving, 4 basic_linear, 16 butterfly, 64K basic_linear, 256K butterfly
    """,
}

ORDERED = {
    "Reduce": """
        2: 0 in-order_binary, 8 linear
        4: 0 linear
        8: 0 in-order_binary, 1K linear, 8K in-order_binary, 16K linear, 256K in-order_binary
        16: 0 in-order_binary
        128: 0 in-order_binary, 512 linear, 1K in-order_binary
        256: 0 in-order_binary
    """,
    "Allreduce": """
        2: 0 recursive_doubling, 128K basic_linear
        4: 0 recursive_doubling
        8: 0 recursive_doubling, 1M nonoverlapping
        16: 0 recursive_doubling
        128: 0 nonoverlapping, 128K recursive_doubling, 512K nonoverlapping
        256: 0 nonoverlapping, 4K recursive_doubling, 512K nonoverlapping
        512: 0 nonoverlapping, 2K recursive_doubling
    """,
    "Reduce_scatter": """
        2: 0 non-overlapping
    """,
    "Reduce_scatter_block": """
        2: 0 basic_linear
    """,
}
