"""Emulated networks for tests: a check whether they can be made here, and a check that none remains."""

import os
import shutil
import subprocess

import pytest

from osu_like_bench.emulate import take_down
from osu_like_bench.emulate.records import states


def may_emulate() -> bool:
    """Whether namespaces and token buckets may be made here: tried out, for a container's root may not."""
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in ("ip", "tc", "nsenter", "unshare")):
        return False
    script = "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 5000 limit 10000"
    return subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, timeout=30).returncode == 0


needs_root = pytest.mark.skipif(not may_emulate(), reason="needs root, iproute2 and a kernel with tbf")


@pytest.fixture
def private_state(tmp_path, monkeypatch):
    """Networks of a test are written down where no other run of the tests looks, and are gone after it."""
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(tmp_path / "state"))
    yield
    for state in list(states()):
        take_down(state.name)
