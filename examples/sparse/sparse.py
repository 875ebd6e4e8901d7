"""A sparse system by conjugate gradients: a coarse level of multigrid, whose rows need entries of far ranks.

    mpirun -n 8 python sparse.py --points 24 --levels 2 --verify

The matrix begins as the 7-point form of -Laplace on a cube of points. Each level joins points in boxes of 2 x 2 x 2 by
smoothed aggregation (P. Vanek, J. Mandel and M. Brezina, "Algebraic multigrid by smoothed aggregation", 1996), so that
rows become fewer and reach farther. Each process has some rows and the vector's entries of the same numbers. For a
product it needs entries of other processes: few bytes from many of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from math import ceil, log10
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve

import topompi
from topompi.errors import TopompiError

__all__ = ["Rows", "coarse", "conjugate_gradients"]

Vector = NDArray[np.float64]


def coarse(points: int, levels: int) -> sparse.csr_array:
    """Return the matrix of a cube of points after some levels of smoothed aggregation.

    :param points: points in each direction of the finest level.
    :param levels: number of times that boxes of 2 x 2 x 2 points become one.
    """
    line = sparse.diags_array([2.0, -1.0, -1.0], offsets=[0, 1, -1], shape=(points, points))
    one = sparse.eye_array(points)
    plane = sparse.kron(line, one) + sparse.kron(one, line)
    matrix = sparse.csr_array(sparse.kron(plane, one) + sparse.kron(sparse.kron(one, one), line))
    for _ in range(levels):
        box = np.arange(points) // 2
        fewer = int(box[-1]) + 1
        number = ((box[:, None, None] * fewer + box[None, :, None]) * fewer + box[None, None, :]).ravel()
        joined = sparse.csr_array((np.ones(len(number)), (np.arange(len(number)), number)))
        smoothed = joined - sparse.diags_array(2 / 3 / matrix.diagonal()) @ (matrix @ joined)
        matrix, points = sparse.csr_array(smoothed.T @ matrix @ smoothed), fewer
    return matrix


class Rows:
    """A process's rows of a matrix, and the exchange of the vector's entries that they need.

    :param comm: communicator of all processes.
    :param matrix: the whole matrix, the same on all processes; a larger program would make its rows alone.
    """

    def __init__(self, comm: MPI.Intracomm, matrix: sparse.csr_array) -> None:
        size, rank = comm.Get_size(), comm.Get_rank()
        first = np.arange(size + 1) * matrix.shape[0] // size
        self.comm, self.own = comm, slice(int(first[rank]), int(first[rank + 1]))
        mine = matrix[self.own]
        needed = np.unique(mine.indices)
        needed = needed[(needed < self.own.start) | (needed >= self.own.stop)]
        owner = np.searchsorted(first, needed, side="right") - 1
        sources = np.unique(owner)
        # Each process knows whose entries it needs, but not who needs its own: the exchange tells it.
        askers, asked = topompi.exchange(comm, sources.tolist(), [needed[owner == one] for one in sources])
        self._sent = np.concatenate([np.empty(0, dtype=np.int64), *asked]) - self.own.start
        count = self.own.stop - self.own.start
        # The vector of a product: own entries first, then those of others in the order of their numbers.
        place = np.full(matrix.shape[0], -1)
        place[self.own] = np.arange(count)
        place[needed] = count + np.arange(len(needed))
        shape = count, count + len(needed)
        self._matrix = sparse.csr_array((mine.data, place[mine.indices], mine.indptr), shape=shape)
        self._vector, self._out = np.empty(shape[1]), np.empty(len(self._sent))
        self.graph = comm.Create_dist_graph_adjacent(sources.tolist(), askers)
        received = np.bincount(owner, minlength=size)[sources]
        self._exchange = [self._out, [len(one) for one in asked]], [self._vector[count:], received]
        self.neighbours, self.halo_seconds = len(askers), 0.0

    def times(self, vector: Vector) -> Vector:
        """Return the product with the matrix; each process has the entries of its own rows."""
        self._vector[: len(vector)] = vector
        begin = perf_counter()
        np.take(vector, self._sent, out=self._out)
        self.graph.Neighbor_alltoallv(*self._exchange)
        self.halo_seconds += perf_counter() - begin
        product: Vector = self._matrix @ self._vector
        return product

    def dot(self, one: Vector, other: Vector) -> float:
        """Return the scalar product over all processes."""
        total = np.array([one @ other])
        self.comm.Allreduce(MPI.IN_PLACE, total)
        return float(total[0])

    def free(self) -> None:
        """Free the communicator with the graph."""
        self.graph.Free()


def conjugate_gradients(
    times: Callable[[Vector], Vector], dot: Callable[[Vector, Vector], float], right: Vector, tolerance: float
) -> tuple[Vector, int]:
    """Return the solution and the number of iterations (M. R. Hestenes and E. Stiefel 1952).

    :param times: the product with the matrix.
    :param dot: the scalar product.
    :param right: the right side.
    :param tolerance: limit of the residual's norm, relative to that of the right side.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction, whole = residual.copy(), dot(right, right)
    square, iterations = whole, 0
    while square > tolerance**2 * whole and iterations < 10_000:
        product = times(direction)
        length = square / dot(direction, product)
        solution += length * direction
        residual -= length * product
        former, square = square, dot(residual, residual)
        direction = residual + square / former * direction
        iterations += 1
    return solution, iterations


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Solve the system, and return what there is to say; the same on all processes but for the seconds.

    :param options: the command line's options.
    """
    comm = topompi.Intracomm(MPI.COMM_WORLD) if options.neighbours == "topompi" else MPI.COMM_WORLD
    begin = perf_counter()
    matrix = coarse(options.points, options.levels)
    rows = Rows(comm, matrix)
    made = perf_counter() - begin
    right = np.sin(np.arange(rows.own.start, rows.own.stop) + 1.0)
    solution, iterations = conjugate_gradients(rows.times, rows.dot, right, options.tolerance)
    said: dict[str, Any] = {
        "rows": matrix.shape[0],
        "entries": matrix.nnz,
        "neighbours": comm.allreduce(rows.neighbours, MPI.MAX),
        "iterations": iterations,
        "setup": comm.allreduce(made, MPI.MAX),
        "seconds": comm.allreduce(perf_counter() - begin - made, MPI.MAX),
        "halo": comm.allreduce(rows.halo_seconds, MPI.MAX),
    }
    if options.verify:
        found = np.concatenate(comm.allgather(solution))
        exact = spsolve(matrix.tocsc(), np.sin(np.arange(matrix.shape[0]) + 1.0))
        said["error"] = float(np.abs(found - exact).max() / np.abs(exact).max())
    rows.free()
    return said


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(prog="sparse", description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=24, help="points in each direction (default 24)")
    parser.add_argument("--levels", type=int, default=2, help="levels of aggregation (default 2)")
    parser.add_argument("--tolerance", type=float, default=1e-8, help="limit of the residual (default 1e-8)")
    parser.add_argument("--neighbours", choices=("topompi", "library"), default="topompi", help="whose calls run")
    parser.add_argument("--verify", action="store_true", help="compare with a direct solution")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.points < 2 or options.levels < 0 or not 0 < options.tolerance < 1:
        if MPI.COMM_WORLD.rank == 0:
            wanted = "2 points or more, no negative levels, and a tolerance between 0 and 1"
            print(f"sparse: expecting {wanted}, got {' '.join(sys.argv[1:])}", file=sys.stderr)
        return 2
    try:
        said = run(options)
    except TopompiError as error:
        if MPI.COMM_WORLD.rank == 0:
            print(f"sparse: {error}", file=sys.stderr)
        return 1
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(said) if options.json else words(said))
    return 0


def words(said: dict[str, Any]) -> str:
    """Return the outcome in words.

    :param said: what ``run`` returned.
    """
    entries = said["entries"] / said["rows"]
    lines = [
        f"{said['rows']} rows, {entries:.1f} entries a row, up to {said['neighbours']} neighbours",
        f"{said['iterations']} iterations",
        f"set up in {said['setup']:.2f} s, solved in {said['seconds']:.2f} s",
        f"exchanges {said['halo']:.2f} s",
    ]
    if "error" in said:
        lines.append(f"difference from the direct solution: at most 1e{ceil(log10(2 * said['error'] + 1e-16))}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
