"""Turbulence from a Taylor-Green vortex: the Navier-Stokes equations by Fourier transforms in three dimensions.

    mpirun -n 8 python fft3d.py --shape 32x32x32 --steps 10 --verify

Pseudo-spectral in space, fourth order in time (Runge-Kutta), in a periodic box of edge 2 pi (S. A. Orszag and G. S.
Patterson, "Numerical simulation of three-dimensional homogeneous isotropic turbulence", 1972). The field is cut into
pencils over a grid of processes. A transform works along the pencils' own direction; a transpose in the rows of the
process grid turns them to the second direction, and a transpose in its columns to the third. A transform and its
inverse take four alltoalls.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from scipy import fft

import topompi
from topompi.errors import TopompiError
from topompi.schedules.alltoall.fft import pencil_grid, squarest
from topompi.views.network import network_of

__all__ = ["Flow", "Pencils", "Transpose", "shares"]

Field = NDArray[np.float64]
Modes = NDArray[np.complex128]
COMPONENTS = 3  # components of a velocity, the fields that are transformed together
STAGES = ((1 / 6, 1 / 2), (1 / 3, 1 / 2), (1 / 3, 1.0), (1 / 6, 0.0))  # weights and nodes of the Runge-Kutta method


def shares(extent: int, parts: int) -> list[slice]:
    """Cut a direction into parts of nearly equal length, the longer ones first."""
    ends = np.cumsum([0, *(extent // parts + (part < extent % parts) for part in range(parts))]).tolist()
    return [slice(*both) for both in pairwise(ends)]


class Transpose:
    """A transpose between pencils that are whole along one direction and pencils that are whole along another.

    :param comm: communicator of the processes that share the two directions: a row of the process grid, or a column.
    :param before: shape of this process's array before the transpose.
    :param whole: axis along which the array is whole before, and cut after.
    :param cut: axis along which the array is cut before, and whole after.
    :param extent: number of points along ``cut``.
    :param types: whether data are exchanged by MPI datatypes and Alltoallw; otherwise they are packed into equal
        blocks, for Alltoall.

    Cost: a message to each other process of ``comm``; packed messages all have the size of the largest.
    """

    def __init__(
        self, comm: MPI.Intracomm, before: tuple[int, ...], whole: int, cut: int, extent: int, types: bool
    ) -> None:
        self.comm, self.seconds = comm, 0.0
        here, there = shares(before[whole], comm.size), shares(extent, comm.size)
        self.before = before
        self.after = tuple(
            {whole: here[comm.rank].stop - here[comm.rank].start, cut: extent}.get(axis, length)
            for axis, length in enumerate(before)
        )
        self._sent = [_along(whole, part, len(before)) for part in here]
        self._received = [_along(cut, part, len(before)) for part in there]
        self._types = self._datatypes() if types else ()
        largest = list(before)
        largest[whole], largest[cut] = here[0].stop, there[0].stop
        self._packed = () if types else tuple(np.zeros((comm.size, *largest), complex) for _ in range(2))

    def forward(self, source: Modes, target: Modes) -> None:
        """Transpose the array ``source``, whole along the first direction, into ``target``, whole along the second."""
        self._exchange(source, target, self._sent, self._received, 0)

    def backward(self, source: Modes, target: Modes) -> None:
        """Transpose the array ``source``, whole along the second direction, into ``target``, whole along the first."""
        self._exchange(source, target, self._received, self._sent, 1)

    def _exchange(self, source: Modes, target: Modes, sent: Any, received: Any, back: int) -> None:
        begin = perf_counter()
        if self._types:
            ours, theirs = self._types[back], self._types[1 - back]
            self.comm.Alltoallw([source, ours], [target, theirs])
        else:
            outgoing, incoming = self._packed
            for block, part in zip(outgoing, sent, strict=True):
                _corner(block, source[part])[...] = source[part]
            self.comm.Alltoall(outgoing, incoming)
            for block, part in zip(incoming, received, strict=True):
                target[part] = _corner(block, target[part])
        self.seconds += perf_counter() - begin

    def _datatypes(self) -> tuple[list[MPI.Datatype], list[MPI.Datatype]]:
        """Return MPI datatypes of the part exchanged with each process, in the array before and in the array after."""
        made: tuple[list[MPI.Datatype], list[MPI.Datatype]] = ([], [])
        for found, shape, parts in zip(made, (self.before, self.after), (self._sent, self._received), strict=True):
            for part in parts:
                ends = [one.indices(length) for one, length in zip(part, shape, strict=True)]
                begin, size = [one[0] for one in ends], [one[1] - one[0] for one in ends]
                empty = 0 in size  # MPI has no empty sub-array
                kind = MPI.C_DOUBLE_COMPLEX
                one = kind.Create_contiguous(0) if empty else kind.Create_subarray(shape, size, begin)
                found.append(one.Commit())
        return made

    def free(self) -> None:
        """Free the datatypes."""
        for kind in (kind for kinds in self._types for kind in kinds):
            kind.Free()


def _along(axis: int, part: slice, axes: int) -> tuple[slice, ...]:
    return tuple(part if one == axis else slice(None) for one in range(axes))


def _corner(block: Modes, part: Modes) -> Modes:
    return block[tuple(slice(length) for length in part.shape)]


class Pencils:
    """Real fields over a grid of processes, and their Fourier modes.

    Fields are whole along z; x is cut over the rows of the process grid, and y over its columns. Modes are whole along
    x; y is cut over the rows, and z over the columns. The first axis of an array counts the fields: (fields, x, y, z).

    :param comm: communicator whose rank r * columns + c is at (r, c) of the process grid.
    :param shape: number of points along x, y, z.
    :param rows: number of rows of the process grid.
    :param types: whether transposes use MPI datatypes, see ``Transpose``.
    """

    def __init__(self, comm: MPI.Intracomm, shape: tuple[int, ...], rows: int, types: bool = False) -> None:
        self.comm, self.shape, self.rows, self.columns = comm, shape, rows, comm.size // rows
        row, column = divmod(comm.rank, self.columns)
        self.row, self.column = comm.Split(row, column), comm.Split(column, row)
        x, y = shares(shape[0], rows)[row], shares(shape[1], self.columns)[column]
        modes_y, modes_z = shares(shape[1], rows)[row], shares(shape[2] // 2 + 1, self.columns)[column]
        self.points, self.modes = (x, y, slice(shape[2])), (slice(shape[0]), modes_y, modes_z)
        z_whole = (COMPONENTS, x.stop - x.start, y.stop - y.start, shape[2] // 2 + 1)
        self._to_y = Transpose(self.row, z_whole, 3, 2, shape[1], types)
        self._to_x = Transpose(self.column, self._to_y.after, 2, 1, shape[0], types)
        self._work = tuple(np.empty(one, complex) for one in (z_whole, self._to_y.after, self._to_x.after))

    @property
    def seconds(self) -> float:
        """Seconds spent in transposes on this process."""
        return self._to_y.seconds + self._to_x.seconds

    def forward(self, fields: Field) -> Modes:
        """Return the modes of fields: this process's part of numpy's ``rfftn``."""
        _, y_whole, x_whole = self._work
        self._to_y.forward(fft.rfft(fields, axis=3), y_whole)
        self._to_x.forward(fft.fft(y_whole, axis=2), x_whole)
        return np.asarray(fft.fft(x_whole, axis=1))

    def backward(self, modes: Modes) -> Field:
        """Return the fields of modes, the inverse of ``forward``."""
        z_whole, y_whole, _ = self._work
        self._to_x.backward(fft.ifft(modes, axis=1), y_whole)
        self._to_y.backward(fft.ifft(y_whole, axis=2), z_whole)
        return np.asarray(fft.irfft(z_whole, self.shape[2], axis=3))

    def gathered(self, fields: NDArray[Any], modes: bool = False) -> NDArray[Any] | None:
        """Return the whole fields, or modes, on rank 0, None elsewhere."""
        parts = self.comm.gather((self.modes if modes else self.points, fields))
        if parts is None:
            return None
        extents = (*self.shape[:2], self.shape[2] // 2 + 1 if modes else self.shape[2])
        whole = np.empty((len(fields), *extents), fields.dtype)
        for place, part in parts:
            whole[(slice(None), *place)] = part
        return whole

    def free(self) -> None:
        """Free the communicators of rows and columns."""
        for one in (self._to_y, self._to_x):
            one.free()
        self.row.Free()
        self.column.Free()


class Flow:
    """An incompressible flow in a periodic box, whose velocity is kept as modes.

    :param pencils: distribution of the fields over processes.
    :param viscosity: viscosity of the fluid.
    :param plane: whether the flow starts from vortices that do not depend on z, whose exact solution is known;
        otherwise it starts from those of Taylor and Green, "Mechanism of the production of small eddies from large
        ones", 1937, which break up.
    """

    def __init__(self, pencils: Pencils, viscosity: float, plane: bool = False) -> None:
        self.pencils, self.viscosity, self.plane = pencils, viscosity, plane
        waves = [fft.fftfreq(extent, 1 / extent) for extent in pencils.shape[:2]]
        waves.append(fft.rfftfreq(pencils.shape[2], 1 / pencils.shape[2]))
        own = [wave[part] for wave, part in zip(waves, pencils.modes, strict=True)]
        self._k = np.stack(np.meshgrid(*own, indexing="ij"))
        self._square = (self._k**2).sum(axis=0)
        limits = np.array(pencils.shape).reshape(3, 1, 1, 1) / 3  # products of two kept modes do not alias to kept ones
        self._kept = (np.abs(self._k) < limits).all(axis=0)
        self._share = self._k / np.where(self._square == 0, 1.0, self._square)
        self.modes = pencils.forward(self.start())

    def start(self, decay: float = 1.0) -> Field:
        """Return the initial velocity on this process's points, times a factor."""
        axes = [2 * np.pi * np.arange(extent) / extent for extent in self.pencils.shape]
        own = [axis[part] for axis, part in zip(axes, self.pencils.points, strict=True)]
        x, y, z = np.meshgrid(*own, indexing="ij")
        vary = np.ones_like(z) if self.plane else np.cos(z)
        return decay * np.stack((np.sin(x) * np.cos(y) * vary, -np.cos(x) * np.sin(y) * vary, np.zeros_like(z)))

    def vorticity(self, modes: Modes) -> Field:
        """Return the curl of a velocity."""
        return self.pencils.backward(1j * np.cross(self._k, modes, axis=0))

    def change(self, modes: Modes) -> Modes:
        """Return the derivative of the velocity in time; it takes nine transforms of a field."""
        product = np.cross(self.pencils.backward(modes), self.vorticity(modes), axis=0)
        force = self.pencils.forward(product) * self._kept
        pressure = (self._k * force).sum(axis=0)
        return np.asarray(force - self._share * pressure - self.viscosity * self._square * modes)

    def step(self, length: float) -> None:
        """Advance the velocity by a time step of this length."""
        start, change = self.modes, self.change(self.modes)
        total = start.copy()
        for weight, node in STAGES:
            total += weight * length * change
            if node:
                change = self.change(start + node * length * change)
        self.modes = total

    def energy(self) -> float:
        """Return the kinetic energy, half the mean square of the velocity; collective."""
        fields = self.pencils.backward(self.modes)
        total = self.pencils.comm.allreduce(float((fields**2).sum()))
        return round(float(total / 2 / np.prod(self.pencils.shape)), 12)  # rounded, because the order of the sum varies


def placed(comm: MPI.Intracomm, rows: int | None) -> tuple[MPI.Intracomm, int]:
    """Return a communicator in the order of the process grid, and the number of its rows.

    If the network is known (``topompi.interface``), rows are inside hosts or leaf switches, and the grid is the one
    whose transposes take the busiest links the least time. Otherwise the grid is as square as possible, and ranks keep
    their order.
    """
    if not isinstance(comm, topompi.Intracomm):
        return comm.Dup(), rows or squarest(comm.size)
    rows, order = pencil_grid(network_of(topompi.interface(comm)), rows)
    return comm.Split(0, int(np.flatnonzero(order == comm.rank)[0])), rows


def parse(comm: MPI.Intracomm) -> argparse.Namespace:
    """Parse the command line on rank 0 for all; end all ranks if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="32x32x32", help="points along x, y, z (default 32x32x32)")
    parser.add_argument("--steps", type=int, default=10, help="time steps (default 10)")
    parser.add_argument("--step", type=float, default=0.01, help="length of a time step (default 0.01)")
    parser.add_argument("--viscosity", type=float, default=0.01, help="of the fluid (default 0.01)")
    parser.add_argument("--plane", action="store_true", help="vortices that do not depend on z: their course is known")
    parser.add_argument("--grid", default="auto", help="rows and columns of processes, as 4x2, or auto")
    parser.add_argument("--comm", choices=("native", "topompi"), default="native", help="whose communicators to use")
    parser.add_argument("--types", action="store_true", help="transpose by Alltoallw of sub-arrays, not by Alltoall")
    parser.add_argument("--verify", action="store_true", help="compare with numpy's transform and one process's run")
    parser.add_argument("--save", metavar="FILE.png", help="draw a slice of the vorticity (needs matplotlib)")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    options: argparse.Namespace | None
    told: tuple[argparse.Namespace | None, str] = (None, "")
    try:
        if comm.rank == 0:
            told = understood(parser.parse_args(), comm.size)
    finally:  # if the parser ends rank 0, the other ranks are told
        options, problem = comm.bcast(told)
    if problem and comm.rank == 0:
        print(f"fft3d: {problem}", file=sys.stderr)
    if options is None:
        sys.exit(1 if problem else 0)
    return options


def understood(options: argparse.Namespace, size: int) -> tuple[argparse.Namespace | None, str]:
    """Return the options with numbers in place of texts; or None, and the error."""
    auto = options.grid == "auto"
    try:
        options.shape = tuple(int(word) for word in options.shape.split("x"))
        rows, columns = (0, 0) if auto else (int(word) for word in options.grid.split("x"))
    except ValueError:
        return None, f"expecting --shape as 32x32x32 and --grid as 4x2, got {options.shape} and {options.grid}"
    if len(options.shape) != 3 or min(options.shape) < 2:
        return None, "--shape: expecting 2 points or more along each of three directions, as 32x32x32"
    if not auto and (min(rows, columns) < 1 or rows * columns != size):
        return None, f"--grid: expecting a grid of {size} processes, got {options.grid}"
    options.rows = rows or None
    if options.steps < 0 or not options.step > 0 or not options.viscosity >= 0:
        return None, "expecting --steps and --viscosity of at least 0 and --step above 0"
    if options.save and find_spec("matplotlib") is None:
        return None, "--save: expecting matplotlib, which is not installed"
    if options.save and not Path(options.save).parent.is_dir():
        return None, f"expecting a directory for {options.save}"
    return options, ""


def checks(flow: Flow, options: argparse.Namespace) -> dict[str, float]:
    """Return the differences of the transform from numpy's, and of the flow from a run on one process; collective."""
    pencils = flow.pencils
    x, y, z = (np.arange(extent) for extent in pencils.shape)
    whole = np.stack([np.sin(x[:, None, None] * (n + 1) + y[:, None] ** 2 + np.sqrt(z)) for n in range(COMPONENTS)])
    fields = whole[(slice(None), *pencils.points)]
    modes = pencils.forward(fields)
    back = pencils.comm.allreduce(float(np.abs(pencils.backward(modes) - fields).max(initial=0.0)), MPI.MAX)
    found, velocity = pencils.gathered(modes, modes=True), pencils.gathered(pencils.backward(flow.modes))
    errors = [0.0, 0.0]
    if found is not None and velocity is not None:
        exact = np.fft.rfftn(whole, axes=(1, 2, 3))
        errors = [float(np.abs(found - exact).max() / np.abs(exact).max()), serial_difference(flow, options, velocity)]
    transform, serial = pencils.comm.bcast(errors)
    return {"transform_error": transform, "inverse_error": back, "serial_error": serial}


def serial_difference(flow: Flow, options: argparse.Namespace, velocity: Field) -> float:
    """Return the largest difference of the velocity from that of a run on this process alone."""
    alone = Flow(Pencils(MPI.COMM_SELF, flow.pencils.shape, 1), flow.viscosity, flow.plane)
    for _ in range(options.steps):
        alone.step(options.step)
    serial = alone.pencils.backward(alone.modes)
    alone.pencils.free()
    return float(np.abs(velocity - serial).max())


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Solve, and return the results, which are the same on all ranks except for times and checks."""
    begin = perf_counter()
    comm = topompi.Intracomm(MPI.COMM_WORLD) if options.comm == "topompi" else MPI.COMM_WORLD
    comm, rows = placed(comm, options.rows)
    pencils = Pencils(comm, options.shape, rows, options.types)
    flow = Flow(pencils, options.viscosity, options.plane)
    flow.change(flow.modes)  # the first messages make connections and plans
    setup, before = perf_counter() - begin, pencils.seconds
    comm.Barrier()
    begin = perf_counter()
    for _ in range(options.steps):
        flow.step(options.step)
    comm.Barrier()
    seconds, transposes = perf_counter() - begin, pencils.seconds - before
    said: dict[str, Any] = {"shape": options.shape, "grid": [rows, pencils.columns], "comm": options.comm}
    said |= {"exchange": "Alltoallw" if options.types else "Alltoall", "steps": options.steps}
    said |= {"start": "plane" if options.plane else "Taylor-Green", "setup": setup}
    # Means over the ranks, each of which starts and stops its clock when it leaves a barrier.
    said["seconds"], said["communication"] = (comm.allreduce(part) / comm.size for part in (seconds, transposes))
    said["energy"] = flow.energy()
    if options.plane:
        exact = flow.start(float(np.exp(-2 * options.viscosity * options.steps * options.step)))
        error = float(np.abs(pencils.backward(flow.modes) - exact).max(initial=0.0))
        said["error"] = comm.allreduce(error, MPI.MAX)
    if options.verify:
        said |= checks(flow, options)
    if options.save:
        whole = pencils.gathered(flow.vorticity(flow.modes))
        if whole is not None:
            draw(whole, options)
    pencils.free()
    comm.Free()
    return said


def draw(vorticity: Field, options: argparse.Namespace) -> None:
    """Draw the magnitude of the vorticity in a plane of constant z."""
    from matplotlib.figure import Figure  # imported only if a picture is wanted

    place = options.shape[2] // 8
    strength = np.sqrt((vorticity[:, :, :, place] ** 2).sum(axis=0)).T
    figure = Figure(figsize=(5, 4), layout="constrained")
    title = f"vorticity at z = {place / options.shape[2]:.3g} x 2 pi, t = {options.steps * options.step:g}"
    axes = figure.add_subplot(xlabel="x", ylabel="y", title=title)
    edge = 2 * np.pi
    figure.colorbar(axes.imshow(strength, origin="lower", cmap="magma", extent=(0, edge, 0, edge)))
    figure.savefig(options.save, dpi=80)


def lines(said: dict[str, Any]) -> Iterator[str]:
    """Yield the results as lines."""
    shape, grid = ("x".join(map(str, said[name])) for name in ("shape", "grid"))
    yield f"{said['start']} vortices on {shape} points, {grid} processes, {said['steps']} steps, {said['exchange']}"
    share = said["communication"] / said["seconds"] if said["seconds"] else 0.0
    yield f"set up in {said['setup']:.2f} s, solved in {said['seconds']:.2f} s"
    yield f"transposes {said['communication']:.2f} s, {share:.0%}"
    yield f"kinetic energy {said['energy']:.12f}"
    if "error" in said:
        yield f"largest error against the vortices' known course: {below(said['error'])}"
    if "transform_error" in said:
        yield f"largest error of the transform against numpy.fft.rfftn: {below(said['transform_error'])}"
        yield f"and of the way there and back: {below(said['inverse_error'])}"
        yield f"largest difference from the run on one process: {below(said['serial_error'])}"


def below(error: float) -> str:
    """Format a rounding error by its power of ten."""
    return f"below 1e{int(np.floor(np.log10(error))) + 1}" if error else "none"


def main() -> int:
    """Solve, and print the results on rank 0; exit code 1 if something is impossible or the result is wrong."""
    options = parse(MPI.COMM_WORLD)
    said = run(options)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(said) if options.json else "\n".join(lines(said)))
    errors = [said.get(name, 0.0) for name in ("transform_error", "inverse_error", "serial_error")]
    return 0 if max(errors) < 1e-10 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (TopompiError, OSError) as error:
        if MPI.COMM_WORLD.rank == 0:  # if a communicator cannot be made, all ranks have the error
            print(f"fft3d: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)
