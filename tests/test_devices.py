"""Messages in a device's memory, and arrays that share theirs by DLPack only."""

import json

import numpy as np
import pytest
from mpi4py import MPI

from tests.programs.devices import ALGORITHMS, OnDevice
from tests.support import ROOT, pytest_on_ranks
from topompi.execution.buffers import DeviceMemoryError, block, vector


class ByDlpack:
    """An array of another library, without Python's buffer protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


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


@pytest.mark.parametrize("size", [2, 5])
def test_a_device_s_messages_are_the_library_s(size, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(
        json.dumps(
            {
                "format": "topompi rules",
                "version": 1,
                "rules": [{"collective": name.lower(), "algorithm": chosen} for name, chosen in ALGORITHMS.items()],
            }
        )
    )
    program = ROOT / "tests" / "programs" / "devices.py"
    printed = pytest_on_ranks(size, program, env={"DEVICES_RULES": str(rules)})
    assert f"{len(ALGORITHMS) * 2 + 4} passed" in printed
