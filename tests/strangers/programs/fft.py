"""A Poisson problem with mpi4py-fft, slabs and pencils: the program knows nothing of topompi."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

comm = MPI.COMM_WORLD
shape = (16, 12, 10)
for grid in ((-1,), (0, 0, 1)):
    fft = PFFT(comm, shape, axes=(0, 1, 2), dtype=float, grid=grid)
    source = newDistArray(fft, False)
    place = source.local_slice()
    source[:] = np.random.default_rng(5).standard_normal(shape)[place]
    modes = fft.forward(source, newDistArray(fft, True))
    back = fft.backward(modes, newDistArray(fft, False))
    assert np.allclose(back, source)
    other = source.redistribute(next(axis for axis in range(3) if source.alignment != axis))
    assert np.array_equal(other, np.random.default_rng(5).standard_normal(shape)[other.local_slice()])
    energy = comm.allreduce(float((np.abs(modes) ** 2).sum()))
    parts = comm.gather((modes.local_slice(), np.array(modes)))
    if comm.rank == 0:
        whole = np.empty(modes.global_shape, complex)
        for place, part in parts:
            whole[place] = part
        exact = np.fft.rfftn(np.random.default_rng(5).standard_normal(shape)) / np.prod(shape)
        assert np.allclose(whole, exact, rtol=0, atol=1e-15)
        print(grid, f"{energy:.9e}", np.array_repr(whole[:, 3, 4], precision=9))
    fft.destroy()
