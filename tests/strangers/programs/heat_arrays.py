"""heat's distributed arrays: sums, orders, products and what its own reduction operations find."""

import heat as ht
import numpy as np

table = (np.arange(600) * 7919 % 601).reshape(20, 30)
array = ht.array(table, split=0)
real = ht.array(table / 601, split=0)
tall = ht.array(table.reshape(150, 4) / 601, split=0)
triangle = ht.linalg.qr(tall).R
found = {
    "sum": array.sum().item(),
    "sums": array.sum(axis=0).numpy().tolist(),
    "argmax": [ht.argmax(array).item(), ht.argmax(array, axis=0).numpy().tolist()],
    "argmin": [ht.argmin(array).item(), ht.argmin(array, axis=0).numpy().tolist()],
    "max": array.max(axis=0).numpy().tolist(),
    "any and all": [bool(ht.any(array == 5)), bool(ht.all(array >= 0))],
    "cumsum": ht.cumsum(array, axis=0).numpy()[-1].tolist(),
    "sorted": ht.sort(array, axis=0)[0].numpy().sum(axis=1).tolist(),
    "resplit": ht.resplit(array, 1).numpy().sum(axis=0).tolist(),
    "transposed": array.T.numpy()[3].tolist(),
    "product": ht.matmul(array, array.T).numpy().diagonal().tolist(),
    "mean and deviation": [round(ht.mean(real).item(), 6), round(ht.std(real).item(), 6)],
    "triangle": np.abs(triangle.numpy().diagonal()).round(4).tolist(),
}
for name, value in found.items():
    if ht.MPI_WORLD.rank == 0:
        print(name, value)
