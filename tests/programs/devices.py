"""Messages that say that a device holds them, as CuPy's arrays do: the MPI library's to send, whatever is chosen.

Here the device's memory is the host's, so that any MPI library can send it; topompi must not read it all the same.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import topompi
from topompi.mpi.communicator.agreement import AgreementError
from topompi.mpi.execution import running as planned

LENGTH = 6
SIZE, RANK = MPI.COMM_WORLD.Get_size(), MPI.COMM_WORLD.Get_rank()
ALGORITHMS = {
    "Bcast": "chain",
    "Gather": "leaders",
    "Alltoall": "shift",
    "Alltoallv": "node_aware",
    "Allreduce": "doubling",
}


class OnDevice:
    """An array that only says where it lies: its items are not for this processor."""

    def __init__(self, array: np.ndarray) -> None:
        self.nbytes, self._interface = array.nbytes, array.__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {name: self._interface[name] for name in ("shape", "typestr", "data", "strides")} | {"version": 2}


def arguments(method: str, wrap: Any) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray]:
    """Of a method: what it is called with, where its result is, and what this rank is to find there."""
    own = np.arange(LENGTH, dtype=float) + 100 * RANK
    everyone = np.zeros((SIZE, LENGTH))
    expected = np.arange(LENGTH) + 100 * np.arange(SIZE)[:, None]
    if method == "Bcast":
        return (wrap(own), 0), own, expected[0]
    if method == "Gather":
        return (wrap(own), wrap(everyone) if RANK == 0 else None, 0), everyone, expected if RANK == 0 else 0 * everyone
    if method == "Allreduce":
        return (wrap(own), wrap(everyone[0]), MPI.SUM), everyone[0], expected.sum(0)
    sent = np.tile(own, (SIZE, 1))
    wrap.keep = sent
    return (wrap(sent), wrap(everyone)), everyone, expected


class Plain:
    """A message as an array, or with its type beside it."""

    def __init__(self, kind: Any, typed: bool) -> None:
        self.kind, self.typed, self.keep = kind, typed, None

    def __call__(self, array: np.ndarray) -> Any:
        message = self.kind(array)
        return [message, MPI.DOUBLE] if self.typed else message


@pytest.fixture
def communicator(monkeypatch):
    """A communicator that runs other algorithms than the MPI library's for all messages."""
    monkeypatch.setenv("TOPOMPI_RULES", os.environ["DEVICES_RULES"])
    return topompi.Intracomm(
        MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=[f"h000{r % 2 * 3}" for r in range(SIZE)]
    )


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("method", ALGORITHMS)
def test_after_arrays_like_them(communicator, method, typed, monkeypatch):
    ran = []
    run = planned.run
    monkeypatch.setattr(planned, "run", lambda *given: ran.append(run(*given)))
    for kind in (np.asarray, OnDevice, np.asarray, OnDevice):
        given, found, expected = arguments(method, Plain(kind, typed))
        getattr(communicator, method)(*given)
        assert np.array_equal(found, expected), kind
    assert ALGORITHMS[method] in ran


@pytest.mark.parametrize("method", ["Bcast", "Alltoall", "Allreduce"])
def test_persistent(communicator, method):
    given, found, expected = arguments(method, Plain(OnDevice, True))
    request = getattr(communicator, f"{method}_init")(*given)
    request.Start()
    request.Wait()
    request.Free()
    assert np.array_equal(found, expected)


def test_checks(monkeypatch):
    monkeypatch.setenv("TOPOMPI_CHECK", "1")
    comm = topompi.Intracomm(MPI.COMM_WORLD)
    for typed in (False, True):
        given, found, expected = arguments("Allreduce", Plain(OnDevice, typed))
        comm.Allreduce(*given)
        assert np.array_equal(found, expected)
    with pytest.raises(
        AgreementError, match="one kind of memory on all ranks, got a device's on rank 0; the host's on"
    ):
        comm.Bcast(Plain(np.asarray if RANK else OnDevice, True)(np.zeros(3)))
