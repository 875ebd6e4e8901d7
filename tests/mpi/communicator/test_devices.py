"""Messages in a device's memory, and arrays whose memory is accessible only through DLPack."""

import ctypes
import json

import numpy as np
import pytest
from mpi4py import MPI

from tests.programs.devices import ALGORITHMS, OnDevice
from tests.support import ROOT, pytest_on_ranks
from topompi.mpi.execution.buffers import DeviceMemoryError, block, vector


class ByDlpack:
    """An array of another library, without Python's buffer protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class Tensor(ctypes.Structure):
    """As DLPack lays it out, to the type of its items and what mpi4py reads behind it."""

    _fields_ = (
        *(("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int)),
        *(("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)),
        *(("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)),
    )


class ByHand:
    """An array as a DLPack tensor of any type, those that numpy does not share too."""

    name = ctypes.create_string_buffer(b"dltensor")  # a capsule holds the address

    def __init__(self, array, kind, bits, lanes=1):
        self.array, self.shape = array, (ctypes.c_int64 * 1)(array.size)
        self.tensor = Tensor(array.ctypes.data, Device(1, 0), 1, kind, bits, lanes, ctypes.addressof(self.shape))

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), ctypes.addressof(self.name), None)

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize(
    ("code", "kind", "bits", "lanes"), [("g", 2, 128, 1), ("G", 2, 128, 2), ("D", 2, 64, 2), ("B", 4, 16, 1)]
)
def test_types_that_numpy_does_not_share_are_read_as_mpi4py_reads_them(code, kind, bits, lanes):
    """Long double, pairs of real numbers, and what has no code, as a short float of eight bits of exponent."""
    array = np.zeros(6, dtype=code if kind == 2 else "u2")
    message = ByHand(array, kind, bits, lanes)
    found = block(message, readonly=False)
    assert (found.address, found.size) == (array.ctypes.data, array.nbytes)
    assert found.datatype == MPI.Datatype.fromcode(code)
    MPI.COMM_SELF.Sendrecv(message, 0, 0, array.copy(), 0, 0)


@pytest.mark.parametrize("code", "bBhHiIlLfdFD")
def test_what_shares_its_memory_is_read(code):
    array = np.zeros(12, dtype=code)
    for message in (ByDlpack(array), [ByDlpack(array), 12, MPI.Datatype.fromcode(code)]):
        found = block(message, readonly=False)
        assert (found.address, found.size) == (array.ctypes.data, array.nbytes)
        assert found.datatype == MPI.Datatype.fromcode(code)


def test_items_without_a_code_are_what_the_datatype_says():
    dates = np.zeros(5, dtype="M8[s]")
    assert block([dates, MPI.INT64_T], readonly=True).size == dates.nbytes
    with pytest.raises(ValueError, match="cannot include dtype 'M' in a buffer"):
        block(dates, readonly=True)


def test_what_a_device_holds_is_not():
    array = np.zeros(12)
    for message in (OnDevice(array), [OnDevice(array), MPI.DOUBLE], [OnDevice(array), 12, MPI.DOUBLE]):
        with pytest.raises(DeviceMemoryError, match="expecting memory of the host"):
            block(message, readonly=True)
        with pytest.raises(DeviceMemoryError):
            vector(message, 3, readonly=True)


@pytest.mark.parametrize("size", [2, pytest.param(5, marks=pytest.mark.long)])
def test_a_device_s_messages_are_the_library_s(size, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(
        json.dumps(
            {
                "format": "topompi rules",
                "version": 1,
                "rules": [{"methods": [name], "algorithm": chosen} for name, chosen in ALGORITHMS.items()],
            }
        )
    )
    program = ROOT / "tests" / "programs" / "devices.py"
    printed = pytest_on_ranks(size, program, env={"DEVICES_RULES": str(rules)})
    assert f"{len(ALGORITHMS) * 2 + 4} passed" in printed
