"""Two charges in a box: their potential by conjugate gradients, on a grid cut into blocks.

    mpirun -n 8 python cg.py --grid 48x48x48 --verify

Solves the 7-point difference form of -Laplace u = b (M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients
for solving linear systems", 1952). An iteration exchanges one layer of points with each of six neighbours, and sums two
numbers over all processes, which is the communication of lattice QCD and of hypre's solvers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from scipy import fft

import topompi
from topompi.errors import TopompiError

__all__ = ["Block", "conjugate_gradients", "directly"]

Field = NDArray[np.float64]


class Block:
    """A process's part of the grid, and the matrix on it.

    :param cart: the process grid; the process at (i, j, k) has the block at (i, j, k).
    :param grid: number of points in each direction.

    Cost: a product with the matrix sends one layer of each face, 8 bytes per point.
    """

    def __init__(self, cart: MPI.Cartcomm, grid: tuple[int, ...]) -> None:
        self.cart, self.grid = cart, grid
        self.points = [
            np.arange(at * extent // count, (at + 1) * extent // count)
            for at, extent, count in zip(cart.coords, grid, cart.dims, strict=True)
        ]
        self.shape = tuple(len(axis) for axis in self.points)
        # Only the vector that is multiplied has a halo; the halo is 0 outside of a grounded box.
        self._padded = np.zeros([extent + 2 for extent in self.shape])
        self.direction = self._view()
        self._scratch = np.empty(self.shape)
        self._requests = [request for axis in range(3) for request in self._faces(axis)]
        self.halo_seconds = self.sum_seconds = 0.0

    def _view(self, axis: int = 0, shift: int = 0) -> Field:
        """Return the points of the block, or their neighbours on one side."""
        first = [1 + shift * (axis == other) for other in range(3)]
        return self._padded[tuple(slice(at, at + many) for at, many in zip(first, self.shape, strict=True))]

    def _faces(self, axis: int) -> Iterator[MPI.Prequest]:
        """Yield requests that exchange both faces across an axis, made once and started in every iteration."""
        low, high = self.cart.Shift(axis, 1)
        last = self.shape[axis]
        for way, (to, sent, source, received) in enumerate(((low, 1, high, last + 1), (high, last, low, 0))):
            tag = 2 * axis + way
            yield self.cart.Recv_init([self._padded, 1, self._layer(axis, received)], source, tag)
            yield self.cart.Send_init([self._padded, 1, self._layer(axis, sent)], to, tag)

    def _layer(self, axis: int, at: int) -> MPI.Datatype:
        sizes = [1 if other == axis else extent for other, extent in enumerate(self.shape)]
        starts = [at if other == axis else 1 for other in range(3)]
        return MPI.DOUBLE.Create_subarray(self._padded.shape, sizes, starts).Commit()

    def times_direction(self, out: Field) -> None:
        """Multiply the matrix by the direction: six times each point minus its six neighbours."""
        begin = perf_counter()
        MPI.Prequest.Startall(self._requests)
        MPI.Request.Waitall(self._requests)
        self.halo_seconds += perf_counter() - begin
        np.multiply(self.direction, 6.0, out=out)
        for axis in range(3):
            out -= self._view(axis, -1)
            out -= self._view(axis, 1)

    def dot(self, one: Field, other: Field) -> float:
        """Return the scalar product over all processes. Cost: an allreduce of 8 bytes."""
        np.multiply(one, other, out=self._scratch)
        total = np.array([self._scratch.sum()])
        begin = perf_counter()
        self.cart.Allreduce(MPI.IN_PLACE, total)
        self.sum_seconds += perf_counter() - begin
        return float(total[0])

    def free(self) -> None:
        """Free requests and communicator."""
        for request in self._requests:
            request.Free()
        self.cart.Free()


def conjugate_gradients(block: Block, right: Field, tolerance: float, most: int) -> tuple[Field, int, float]:
    """Solve until the norm of the residual is at most ``tolerance`` times that of the right side.

    :param block: the process's part of the grid.
    :param right: the block's part of the right side.
    :param tolerance: limit of the residual, relative to the right side.
    :param most: limit of the iterations.
    :return: the block's part of the solution, the number of iterations, and the residual relative to the right side.

    Cost: an iteration makes one product with the matrix and two scalar products.
    """
    solution, residual, product = np.zeros_like(right), right.copy(), np.empty_like(right)
    block.direction[...] = residual
    whole = square = block.dot(residual, residual)
    iterations = 0
    while square > tolerance**2 * whole and iterations < most:
        block.times_direction(product)
        length = square / block.dot(block.direction, product)
        solution += length * block.direction
        product *= length
        residual -= product
        former, square = square, block.dot(residual, residual)
        block.direction *= square / former
        block.direction += residual
        iterations += 1
    return solution, iterations, float(np.sqrt(square / whole))


def fingerprint(values: Field, points: list[NDArray[np.int64]], grid: tuple[int, ...], comm: MPI.Intracomm) -> str:
    """Return a hash of the field's bits that does not depend on the blocks that it is cut into.

    It is the sum modulo 2^64 of all points' bits, each mixed with the point's number (G. L. Steele, D. Lea and C. H.
    Flood, "Fast splittable pseudorandom number generators", 2014). Cost: an allreduce of 8 bytes.
    """
    x, y, z = np.ix_(*points)
    number = ((x * grid[1] + y) * grid[2] + z + 1).astype(np.uint64)
    mixed = np.ascontiguousarray(values).view(np.uint64) + number * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.array([(mixed ^ (mixed >> np.uint64(31))).sum(dtype=np.uint64)])
    comm.Allreduce(MPI.IN_PLACE, total)
    return f"{int(total[0]):016x}"


def charges(grid: tuple[int, ...]) -> Field:
    """Return a field with a positive charge near one corner and a negative one near the opposite corner."""
    right = np.zeros(grid)
    right[tuple(extent // 4 for extent in grid)] = 1.0
    right[tuple(3 * extent // 4 for extent in grid)] = -1.0
    return right


def eigenvalues(grid: tuple[int, ...], periodic: bool) -> Field:
    """Return the eigenvalues of the matrix, whose eigenvectors are the waves that fit into the box."""
    parts = []
    for extent in grid:
        waves = np.arange(extent) / extent if periodic else np.arange(1, extent + 1) / (2 * (extent + 1))
        parts.append(4 * np.sin(np.pi * waves) ** 2)
    x, y, z = np.ix_(*parts)
    values: Field = x + y + z
    return values


def directly(right: Field, periodic: bool) -> Field:
    """Return the solution by (sine) transforms, without iterations and MPI; its mean is 0 if sides are joined."""
    values = eigenvalues(right.shape, periodic)
    if not periodic:
        return fft.idstn(fft.dstn(right, type=1) / values, type=1)
    values[0, 0, 0] = np.inf  # of the constant wave, which is absent because the charges add up to 0
    return fft.ifftn(fft.fftn(right) / values).real


def parse(comm: MPI.Intracomm) -> argparse.Namespace:
    """Parse the command line on rank 0 for all; end all ranks if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", default="48x48x48", help="points in each direction (default 48x48x48)")
    parser.add_argument("--periodic", action="store_true", help="join opposite sides; else they are grounded")
    parser.add_argument("--tolerance", type=float, default=1e-8, help="of the residual, relative (default 1e-8)")
    parser.add_argument("--iterations", type=int, default=2000, help="at most (default 2000)")
    parser.add_argument("--processes", help="processes in each direction, as 4x2x2 (default: MPI_Dims_create's)")
    parser.add_argument("--reorder", choices=("none", "topompi"), default="none", help="who may re-order the ranks")
    parser.add_argument("--verify", action="store_true", help="compare with the direct solution, on rank 0")
    parser.add_argument("--save", metavar="FILE.png", help="draw a slice of the potential (needs matplotlib)")
    parser.add_argument("--write", metavar="FILE.npy", help="write the potential")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    options: argparse.Namespace | None
    told: tuple[argparse.Namespace | None, str] = (None, "")
    try:
        if comm.rank == 0:
            told = understood(parser.parse_args(), comm.size)
    finally:  # if the parser ends rank 0, the other ranks are told
        options, problem = comm.bcast(told)
    if problem and comm.rank == 0:
        print(f"cg: {problem}", file=sys.stderr)
    if options is None:
        sys.exit(1 if problem else 0)
    return options


def understood(options: argparse.Namespace, size: int) -> tuple[argparse.Namespace | None, str]:
    """Return the options with numbers in place of texts; or None, and the error."""
    try:
        options.grid = tuple(int(word) for word in options.grid.split("x"))
        dims = [int(word) for word in options.processes.split("x")] if options.processes else [0, 0, 0]
    except ValueError:
        return None, f"expecting whole numbers as 64x64x64, got --grid {options.grid} --processes {options.processes}"
    if len(options.grid) != 3 or len(dims) != 3:
        return None, "expecting three directions in --grid and --processes, as 64x64x64"
    if options.processes and (min(dims) < 1 or np.prod(dims) != size):
        return None, f"--processes: expecting {size} processes, got {options.processes}"
    options.processes = MPI.Compute_dims(size, dims)
    if min(options.grid) < 2 or any(np.less(options.grid, options.processes)):
        shape = "x".join(map(str, options.processes))
        return None, f"--grid: expecting 2 points or more in each direction, and no fewer than processes of {shape}"
    if not 0 < options.tolerance < 1 or options.iterations < 1:
        return None, "expecting --tolerance between 0 and 1 and --iterations of at least 1"
    if options.save and find_spec("matplotlib") is None:
        return None, "--save: expecting matplotlib, which is not installed"
    missing = [name for name in (options.save, options.write) if name and not Path(name).parent.is_dir()]
    return (None, f"expecting a directory for {missing[0]}") if missing else (options, "")


def gathered(block: Block, values: Field) -> Field | None:
    """Return the whole field on rank 0, None elsewhere."""
    parts = block.cart.gather((block.points, values))
    if parts is None:
        return None
    whole = np.empty(block.grid)
    for points, part in parts:
        whole[np.ix_(*points)] = part
    return whole


def keep(whole: Field, options: argparse.Namespace) -> dict[str, float]:
    """Write and draw the potential; return its difference from the direct solution, and the residual's bound on it."""
    if options.write:
        np.save(options.write, whole)
    if options.save:
        draw(whole, options.save)
    if not options.verify:
        return {}
    exact, values = directly(charges(options.grid), options.periodic), eigenvalues(options.grid, options.periodic)
    condition = values.max() / values[values > 0].min()
    error = np.linalg.norm(whole - exact) / np.linalg.norm(exact)
    return {"error": float(error), "bound": float(condition * options.tolerance)}


def draw(whole: Field, path: str) -> None:
    """Draw the slice through the middle of the last direction."""
    from matplotlib.figure import Figure  # imported only if a picture is wanted

    middle = whole[:, :, whole.shape[2] // 2].T
    most = float(np.abs(middle).max()) or 1.0
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="x", ylabel="y", title=f"u at z = {whole.shape[2] // 2}")
    figure.colorbar(axes.contourf(middle, 24, cmap="RdBu_r", vmin=-most, vmax=most))
    figure.savefig(path, dpi=80)


def lines(said: dict[str, Any]) -> Iterator[str]:
    """Yield the results as lines."""
    grid, processes = ("x".join(map(str, said[name])) for name in ("grid", "processes"))
    yield f"two charges on {grid} points, sides {said['sides']}; {processes} processes"
    if "ranks" in said:
        yield f"ranks: {said['ranks']}"
    yield f"{said['iterations']} iterations, residual {said['residual']:.1e}"
    yield f"set up in {said['setup']:.2f} s, solved in {said['seconds']:.2f} s"
    share = said["communication"] / said["seconds"]
    yield f"halo exchange {said['halo']:.2f} s, allreduce {said['sums']:.2f} s: {share:.0%}"
    yield f"fingerprint {said['fingerprint']}"
    if "error" in said:
        yield f"difference from the direct solution: {said['error']:.1e}; at most {said['bound']:.1e} by the residual"


def main() -> int:
    """Solve, and print the results on rank 0; exit code 1 if something is impossible or the result is wrong."""
    options = parse(MPI.COMM_WORLD)
    begin = perf_counter()
    comm = topompi.Intracomm(MPI.COMM_WORLD) if options.reorder == "topompi" else MPI.COMM_WORLD
    cart = comm.Create_cart(options.processes, [options.periodic] * 3, reorder=True)
    block = Block(cart, options.grid)
    right = charges(options.grid)[np.ix_(*block.points)]
    cart.Barrier()
    middle = perf_counter()
    solution, iterations, residual = conjugate_gradients(block, right, options.tolerance, options.iterations)
    seconds = perf_counter() - middle
    said: dict[str, Any] = {"setup": middle - begin, "seconds": cart.allreduce(seconds) / cart.size}
    said |= {"grid": options.grid, "processes": cart.dims, "reorder": options.reorder}
    said |= {"sides": "joined" if options.periodic else "grounded", "iterations": iterations, "residual": residual}
    said |= {"ranks": topompi.mapping_report(cart).describe()} if isinstance(cart, topompi.Cartcomm) else {}
    said["halo"], said["sums"] = (cart.allreduce(part) / cart.size for part in (block.halo_seconds, block.sum_seconds))
    said["communication"] = said["halo"] + said["sums"]
    said["fingerprint"] = fingerprint(solution, block.points, block.grid, cart)
    whole = gathered(block, solution) if options.verify or options.save or options.write else None
    if cart.rank == 0:
        said |= {} if whole is None else keep(whole, options)
        print(json.dumps(said) if options.json else "\n".join(lines(said)))
    block.free()
    return 0 if said.get("error", 0.0) <= said.get("bound", 0.0) and residual <= options.tolerance else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (TopompiError, OSError) as error:
        if MPI.COMM_WORLD.rank == 0:  # if a communicator cannot be made, all ranks have the error
            print(f"cg: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
