"""The daemon on jobs of a real Slurm, whose steps have no control groups of their own."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.shutter.logs import read_log
from tests.shutter.real import eventually, state
from tests.shutter.test_run import daemon, has_begun
from tests.slurm import slurm_cluster  # noqa: F401 - a fixture
from topompi.machine.shutter.steps import slurm_job
from topompi.machine.shutter.targets import processes_by_group

ENDLESS = "while :; do :; done"


def pids_of(slurm, number):
    return set(slurm_job(number, spool(slurm)).pids(processes_by_group()))


def spool(slurm):
    """The folder of the first host's slurmd, which on a real node is /var/spool/slurmd."""
    return str(slurm.folder / f"s-{slurm.hosts[0]}")


def measured_alone(log):
    return {one.job for one in read_log(log).records if one.region == "during"}


def command_of(pid):
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.fixture
def numbers(slurm):
    """Two jobs of one core each on one node, whose steps keep a core busy."""
    submit = [
        "sbatch",
        "--parsable",
        "-n1",
        f"--nodelist={slurm.hosts[0]}",
        "--output=/dev/null",
        "--wrap",
        f"srun sh -c '{ENDLESS}'",
    ]
    found = [int(slurm.run(submit).stdout) for _ in range(2)]
    yield found
    slurm.run(["scancel", *map(str, found)])
    eventually(lambda: not any(pids_of(slurm, one) for one in found))


def test_the_steps_of_slurm_jobs_are_measured_alone_and_run_on(slurm, numbers, tmp_path):
    def busy(number):
        return [
            pid
            for pid in pids_of(slurm, number)
            if ENDLESS.encode() in command_of(pid) and b"srun" not in command_of(pid)
        ]

    eventually(lambda: all(map(busy, numbers)))
    assert not pids_of(slurm, numbers[0]) & pids_of(slurm, numbers[1])
    log = tmp_path / "log"
    words = [word for name, number in zip("ab", numbers, strict=True) for word in ("--job", f"{name}=slurm:{number}")]
    with daemon(log, "--source", "clock", "--every", "30", "--set", "warm=0", "--slurm", spool(slurm), *words):
        eventually(lambda: has_begun(log) and {"a", "b"} <= measured_alone(log))
    for number in numbers:
        assert busy(number)
        assert all(state(pid) != "T" for pid in busy(number))
    assert json.loads(log.read_text().splitlines()[0])["sources"] == ["clock"]
