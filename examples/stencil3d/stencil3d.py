"""Waves in a box: the wave equation in three dimensions, explicit in time, on a grid cut into blocks.

    mpirun -n 8 python stencil3d.py --grid 64x64x64 --steps 200 --verify

Second order in time, fourth in space (M. A. Dablain, "The application of high-order differencing to the scalar wave
equation", 1986), so that a step needs two layers of points of each of the six neighbouring blocks. Units are those of
the grid: neighbouring points are 1 apart, and waves travel at speed 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import topompi
from topompi.errors import TopompiError

__all__ = ["Halo", "Problem", "Solver", "fingerprint"]

WIDTH = 2  # layers of points that a step needs from each neighbour
STABLE = 0.5  # longest stable step: the stencil's eigenvalues reach -16, and 16 step^2 must not exceed 4
TILE = 1 << 17  # points computed together, so that intermediate results stay in a core's cache
WAVES = (1, 2, 1)  # half waves along each edge of a closed box, whole waves in a periodic box
Field = NDArray[np.float64]
Points = list[NDArray[np.int64]]
Region = tuple[slice, ...]


@dataclass(frozen=True)
class Problem:
    """The problem to solve: a grid, boundaries and initial state.

    :param grid: number of points in each direction.
    :param periodic: whether waves that leave on one side enter on the opposite side; otherwise they are reflected.
    :param step: length of a time step, at most STABLE.
    :param pulse: whether the start is a pulse at rest; otherwise it is a wave, whose exact solution is known.
    """

    grid: tuple[int, ...]
    periodic: bool = False
    step: float = 0.4
    pulse: bool = False

    def exact(self, points: Points, time: float) -> Field:
        """Return the exact solution at a time; for a pulse, return its initial state.

        :param points: numbers of the wanted points in each direction.
        :param time: time since the start.
        """
        if self.pulse:
            widths = (((at - extent / 3) / (extent / 16)) ** 2 for at, extent in self._axes(points))
            return np.exp(-sum(widths, np.zeros(())))
        if self.periodic:  # a travelling wave
            phases = [2 * np.pi * many / extent for many, extent in zip(WAVES, self.grid, strict=True)]
            angles = [phase * at for phase, (at, _) in zip(phases, self._axes(points), strict=True)]
            return np.sin(sum(angles, np.zeros(())) - np.linalg.norm(phases) * time)
        phases = [np.pi * many / (extent + 1) for many, extent in zip(WAVES, self.grid, strict=True)]
        x, y, z = (np.sin(phase * (at + 1)) for phase, (at, _) in zip(phases, self._axes(points), strict=True))
        standing: Field = x * y * z * np.cos(np.linalg.norm(phases) * time)
        return standing

    def _axes(self, points: Points) -> Iterator[tuple[NDArray[np.int64], int]]:
        return zip(np.ix_(*points), self.grid, strict=True)


class Halo:
    """The exchange of a block's faces with its six neighbours, by derived datatypes, without blocking calls or copies.

    :param cart: the process grid.
    :param shape: shape of a field with its halo.

    Cost: a step sends two layers of each face, 8 bytes per point.
    """

    def __init__(self, cart: MPI.Cartcomm, shape: tuple[int, ...]) -> None:
        self._cart = cart
        self._faces: list[tuple[int, int, MPI.Datatype, MPI.Datatype, int]] = []
        for axis, extent in enumerate(shape):
            low, high = cart.Shift(axis, 1)
            first, last = WIDTH, extent - 2 * WIDTH  # own layers that neighbours need; the halo lies outside of them
            for to, sent, source, received in ((low, first, high, last + WIDTH), (high, last, low, first - WIDTH)):
                out, into = (self._layers(shape, axis, begin) for begin in (sent, received))
                self._faces.append((to, source, out, into, len(self._faces)))

    @staticmethod
    def _layers(shape: tuple[int, ...], axis: int, begin: int) -> MPI.Datatype:
        """Return the datatype of two layers across an axis, without the halo in the other directions."""
        sizes, starts = [extent - 2 * WIDTH for extent in shape], [WIDTH] * len(shape)
        sizes[axis], starts[axis] = WIDTH, begin
        return MPI.DOUBLE.Create_subarray(shape, sizes, starts).Commit()

    def start(self, field: Field) -> list[MPI.Request]:
        """Begin the exchange; nothing is sent across an open side."""
        received = [self._cart.Irecv([field, 1, kind], source, tag) for _, source, _, kind, tag in self._faces]
        return received + [self._cart.Isend([field, 1, kind], to, tag) for to, _, kind, _, tag in self._faces]

    def free(self) -> None:
        """Free the datatypes."""
        for _, _, sent, received, _ in self._faces:
            sent.Free()
            received.Free()


class Solver:
    """A block of the grid, with the operations of a time step.

    :param cart: the process grid; the process at (i, j, k) has the block at (i, j, k).
    :param problem: the problem to solve.
    :param overlap: whether points that need no neighbour are computed while faces travel; the result has the same bits.
    """

    def __init__(self, cart: MPI.Cartcomm, problem: Problem, overlap: bool = False) -> None:
        self.cart, self.problem = cart, problem
        self.points = [
            np.arange(at * extent // count, (at + 1) * extent // count)
            for at, extent, count in zip(cart.coords, problem.grid, cart.dims, strict=True)
        ]
        shape = tuple(len(axis) + 2 * WIDTH for axis in self.points)
        self._now, self._before, self._near, self._far = (np.zeros(shape) for _ in range(4))
        self._inside = tuple(slice(WIDTH, extent - WIDTH) for extent in shape)
        core, rim = self._parts() if overlap else ([], [self._inside])
        self._core, self._rim = ([tile for part in parts for tile in _tiles(part)] for parts in (core, rim))
        self._now[self._inside] = problem.exact(self.points, 0.0)
        self._before[self._inside] = problem.exact(self.points, -problem.step)
        self._halo = Halo(cart, shape)
        self.halo_seconds = 0.0

    @property
    def values(self) -> Field:
        """The block, without its halo."""
        return self._now[self._inside]

    def _parts(self) -> tuple[list[Region], list[Region]]:
        """Return the points that need no halo, and the rest in disjoint parts.

        Without the former if the block is too thin.
        """
        if any(part.stop - part.start <= 2 * WIDTH for part in self._inside):
            return [], [self._inside]
        core = tuple(slice(part.start + WIDTH, part.stop - WIDTH) for part in self._inside)
        rim = []
        for axis, (outer, inner) in enumerate(zip(self._inside, core, strict=True)):
            for slab in (slice(outer.start, inner.start), slice(inner.stop, outer.stop)):
                rim.append((*core[:axis], slab, *self._inside[axis + 1 :]))
        return [core], rim

    def advance(self) -> None:
        """Make one time step: an exchange of faces, and some 15 operations per point."""
        begin = perf_counter()
        requests = self._halo.start(self._now)
        self.halo_seconds += perf_counter() - begin
        for region in self._core:
            self._update(region)
        begin = perf_counter()
        MPI.Request.Waitall(requests)
        self.halo_seconds += perf_counter() - begin
        self._mirror()
        for region in self._rim:
            self._update(region)
        self._now, self._before = self._before, self._now

    def _mirror(self) -> None:
        """Set the walls, u = 0 in the halo's inner layer, and the mirrored wave behind them, in its outer layer."""
        if self.problem.periodic:
            return
        for axis, (at, count) in enumerate(zip(self.cart.coords, self.cart.dims, strict=True)):
            layers = np.moveaxis(self._now, axis, 0)
            if at == 0:
                layers[0] = -layers[2]
            if at == count - 1:
                layers[-1] = -layers[-3]

    def _update(self, region: Region) -> None:
        """Replace the previous values of a region by the next ones.

        The order of operations is the same for every point.
        """
        now, before, near, far = (field[region] for field in (self._now, self._before, self._near, self._far))
        for total, distance in ((near, 1), (far, 2)):
            first, *others = (
                self._now[_shifted(region, axis, way)] for axis in range(3) for way in (-distance, distance)
            )
            np.add(first, others[0], out=total)
            for other in others[1:]:
                total += other
        square = self.problem.step**2
        near *= 4 / 3 * square
        far *= square / 12
        near -= far
        np.multiply(now, 2 - 7.5 * square, out=far)
        near += far
        np.subtract(near, before, out=before)

    def run(self, steps: int) -> float:
        """Make time steps; return the seconds until all processes have made theirs."""
        self.cart.Barrier()
        begin, self.halo_seconds = perf_counter(), 0.0
        for _ in range(steps):
            self.advance()
        self.cart.Barrier()
        return perf_counter() - begin

    def free(self) -> None:
        """Free datatypes and communicator; the values stay."""
        self._halo.free()
        self.cart.Free()


def _tiles(region: Region) -> Iterator[Region]:
    """Yield the region in slices across the first direction."""
    first, *others = region
    layers = max(1, TILE // int(np.prod([other.stop - other.start for other in others])))
    for at in range(first.start, first.stop, layers):
        yield (slice(at, min(at + layers, first.stop)), *others)


def _shifted(region: Region, axis: int, distance: int) -> Region:
    part = region[axis]
    return (*region[:axis], slice(part.start + distance, part.stop + distance), *region[axis + 1 :])


def fingerprint(values: Field, points: Points, grid: tuple[int, ...], comm: MPI.Intracomm) -> str:
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


def parse(comm: MPI.Intracomm) -> argparse.Namespace:
    """Parse the command line on rank 0 for all; end all ranks if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", default="64x64x64", help="points in each direction (default 64x64x64)")
    parser.add_argument("--steps", type=int, default=100, help="time steps (default 100)")
    parser.add_argument(
        "--step", type=float, default=0.4, help=f"length of a time step, at most {STABLE} (default 0.4)"
    )
    parser.add_argument("--periodic", action="store_true", help="join opposite sides; else waves are reflected there")
    parser.add_argument(
        "--pulse", action="store_true", help="start from a pulse; else from a wave whose course is known"
    )
    parser.add_argument("--processes", help="processes in each direction, as 4x2x2 (default: MPI_Dims_create's)")
    parser.add_argument("--reorder", choices=("none", "topompi"), default="none", help="who may re-order the ranks")
    parser.add_argument("--overlap", action="store_true", help="compute inner points while faces travel")
    parser.add_argument("--verify", action="store_true", help="compare with a run on rank 0 alone, bit by bit")
    parser.add_argument("--save", metavar="FILE.png", help="draw a slice of the result (needs matplotlib)")
    parser.add_argument("--write", metavar="FILE.npy", help="write the result")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    options: argparse.Namespace | None
    told: tuple[argparse.Namespace | None, str] = (None, "")
    try:
        if comm.rank == 0:
            told = understood(parser.parse_args(), comm.size)
    finally:  # if the parser ends rank 0, the other ranks are told
        options, problem = comm.bcast(told)
    if problem and comm.rank == 0:
        print(f"stencil3d: {problem}", file=sys.stderr)
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
    if any(extent < WIDTH * count for extent, count in zip(options.grid, options.processes, strict=True)):
        shape = "x".join(map(str, options.processes))
        return None, f"--grid: expecting {WIDTH} points a process or more in each direction on {shape} processes"
    if not 0 < options.step <= STABLE or options.steps < 0:
        return None, f"expecting --step above 0 to {STABLE} and --steps of at least 0"
    if options.save and find_spec("matplotlib") is None:
        return None, "--save: expecting matplotlib, which is not installed"
    missing = [name for name in (options.save, options.write) if name and not Path(name).parent.is_dir()]
    return (None, f"expecting a directory for {missing[0]}") if missing else (options, "")


def gathered(solver: Solver) -> Field | None:
    """Return the whole field on rank 0, None elsewhere."""
    parts = solver.cart.gather((solver.points, solver.values.copy()))
    if parts is None:
        return None
    whole = np.empty(solver.problem.grid)
    for points, values in parts:
        whole[np.ix_(*points)] = values
    return whole


def report(solver: Solver, options: argparse.Namespace, setup: float, seconds: float) -> dict[str, Any]:
    """Return the results of a run; collective, and the same on all ranks except for times."""
    problem, cart = solver.problem, solver.cart
    said: dict[str, Any] = {"grid": problem.grid, "processes": cart.dims, "reorder": options.reorder}
    said |= {"start": "pulse" if problem.pulse else "wave", "sides": "joined" if problem.periodic else "closed"}
    said |= {"ranks": topompi.mapping_report(cart).describe()} if isinstance(cart, topompi.Cartcomm) else {}
    said |= {"steps": options.steps, "setup": setup}
    # Means over the ranks, each of which starts and stops its clock when it leaves a barrier.
    said["seconds"], said["communication"] = (
        cart.allreduce(part) / cart.size for part in (seconds, solver.halo_seconds)
    )
    said["points_per_second"] = options.steps * float(np.prod(problem.grid)) / said["seconds"]
    said["fingerprint"] = fingerprint(solver.values, solver.points, problem.grid, cart)
    if not problem.pulse:
        exact = problem.exact(solver.points, options.steps * problem.step)
        said["error"] = cart.allreduce(float(np.abs(solver.values - exact).max()), MPI.MAX)
    return said


def keep(whole: Field, problem: Problem, options: argparse.Namespace) -> dict[str, bool]:
    """Write and draw the field; return whether every bit equals that of one process's run."""
    if options.write:
        np.save(options.write, whole)
    if options.save:
        draw(whole, options.save)
    if not options.verify:
        return {}
    alone = Solver(MPI.COMM_SELF.Create_cart([1, 1, 1], [problem.periodic] * 3), problem)
    alone.run(options.steps)
    alone.free()
    return {"identical": alone.values.tobytes() == whole.tobytes()}


def draw(whole: Field, path: str) -> None:
    """Draw the slice through the middle of the last direction."""
    from matplotlib.figure import Figure  # imported only if a picture is wanted

    middle = whole[:, :, whole.shape[2] // 2].T
    most = float(np.abs(middle).max()) or 1.0
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="x", ylabel="y", title=f"u at z = {whole.shape[2] // 2}")
    figure.colorbar(axes.imshow(middle, origin="lower", cmap="RdBu_r", vmin=-most, vmax=most))
    figure.savefig(path, dpi=80)


def lines(said: dict[str, Any]) -> Iterator[str]:
    """Yield the results as lines."""
    grid, processes = ("x".join(map(str, said[name])) for name in ("grid", "processes"))
    yield f"{said['start']} on {grid} points, sides {said['sides']}; {processes} processes, {said['steps']} steps"
    if "ranks" in said:
        yield f"ranks: {said['ranks']}"
    share, rate = said["communication"] / said["seconds"], said["points_per_second"] / 1e6
    yield f"set up in {said['setup']:.2f} s, solved in {said['seconds']:.2f} s: {rate:.2f} million points/s"
    yield f"halo exchange {said['communication']:.2f} s, {share:.0%}"
    yield f"fingerprint {said['fingerprint']}"
    if "error" in said:
        yield f"largest error against the wave's known course: {said['error']:.1e}"
    if "identical" in said:
        yield "every bit as on one process" if said["identical"] else "NOT AS ON ONE PROCESS"


def main() -> int:
    """Solve, and print the results on rank 0; exit code 1 if something is impossible or the result is wrong."""
    options = parse(MPI.COMM_WORLD)
    begin = perf_counter()
    problem = Problem(options.grid, options.periodic, options.step, options.pulse)
    comm = topompi.Intracomm(MPI.COMM_WORLD) if options.reorder == "topompi" else MPI.COMM_WORLD
    cart = comm.Create_cart(options.processes, [options.periodic] * 3, reorder=True)
    solver = Solver(cart, problem, options.overlap)
    setup = perf_counter() - begin
    said = report(solver, options, setup, solver.run(options.steps))
    whole = gathered(solver) if options.verify or options.save or options.write else None
    if cart.rank == 0:
        said |= {} if whole is None else keep(whole, problem, options)
        print(json.dumps(said) if options.json else "\n".join(lines(said)))
    solver.free()
    return 0 if said.get("identical", True) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (TopompiError, OSError) as error:
        if MPI.COMM_WORLD.rank == 0:  # if a communicator cannot be made, all ranks have the error
            print(f"stencil3d: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
