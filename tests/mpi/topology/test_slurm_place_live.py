"""A real Slurm puts every task where our files say, and its tasks know the network without options."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.mpi.topology.test_slurm_live import HOPS
from tests.services import wait_until
from tests.support import ROOT, mpirun
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import write_mapping
from topompi.topology.sources import automatic, slurm_addresses

pytestmark = pytest.mark.long

TOPOMPI = [sys.executable, "-P", "-m", "topompi"]
WHERE = "echo $SLURM_PROCID $SLURMD_NODENAME $(hostname)"
RANK = """
from mpi4py import MPI
import topompi
comm = topompi.Intracomm(MPI.COMM_WORLD)
hosts = comm.gather(MPI.Get_processor_name())
if comm.rank == 0:
    levels = [(level.name, level.cluster.tolist()) for level in topompi.interface(comm).levels]
    print([hosts, levels, topompi.interface(comm).hop_matrix.tolist(), topompi.interface(comm).describe()])
"""


def landed(lines: list[str]) -> list[str]:
    """The host of each task, by its lines of WHERE: Slurm's name of the node has to be the host's own name."""
    rows = [line.split() for line in lines]
    assert all(node == host for _, node, host in rows)
    found = {int(task): node for task, node, _ in rows}
    assert sorted(found) == list(range(len(rows)))
    return [found[task] for task in range(len(rows))]


def slurm_file(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("slots", "seed"), [((2, 2, 2, 2), 1), ((4, 1, 3, 2), 2), ((3, 0, 4, 0), 3)])
def test_line_k_of_the_host_file_is_the_node_of_task_k(slurm, tmp_path, slots, seed):
    """A random mapping onto equal slots, unequal ones, and a part of the nodes, with an empty slot in each."""
    order = np.random.default_rng(seed).permutation(sum(slots))[:-1]
    mapping = Mapping.of(order, slurm.hosts, np.array(slots))
    path = tmp_path / "hosts"
    path.write_text(write_mapping(mapping, "slurm"))
    lines = slurm.job(["srun", "-m", "arbitrary", "sh", "-c", WHERE], {"SLURM_HOSTFILE": str(path)})
    assert landed(lines) == [slurm.hosts[host] for host in mapping.host_of_rank]


@pytest.fixture
def pairs(tmp_path):
    """Task r sends most to task r + tasks / 2; in blocks no such pair is on one node."""

    def graph(tasks: int) -> Path:
        path = tmp_path / f"pairs{tasks}.txt"
        half = tasks // 2
        rows = [(r, r + half, 900) for r in range(half)] + [(r, r + 1, 1) for r in range(tasks - 1)]
        path.write_text("".join(f"{u} {v} {b}\n" for u, v, b in rows))
        return path

    return graph


@pytest.mark.parametrize(
    ("options", "slots"),
    [
        (["--nodes=4", "--ntasks=8"], [2, 2, 2, 2]),
        (["--nodes=4", "--ntasks=7"], [2, 2, 2, 1]),
        (["--nodes=3", "--ntasks=8"], [3, 3, 2]),
    ],
)
def test_place_reads_its_allocation_and_srun_and_mpirun_obey(slurm, tmp_path, pairs, options, slots):
    hosts, ranks, hydra, figures = (tmp_path / name for name in ("hosts", "ranks", "hydra", "figures"))
    place = [*TOPOMPI, "slurm", "place", str(pairs(sum(slots))), "--json"]
    other = [
        " ".join([*place, "--format", form, "-o", str(path), ">/dev/null"])
        for form, path in (("rankfile5", ranks), ("hydra", hydra))
    ]
    place += ["-o", str(hosts)]
    start, *_ = mpirun()
    if "--allow-run-as-root" in mpirun():
        start += f" --allow-run-as-root --map-by rankfile:file={ranks} --bind-to none"
    else:
        start += f" -f {hydra} -rankmap $(sed -n 's/^# rankmap //p' {hydra}) -n {sum(slots)}"
    lines = [*other, f"{' '.join(place)} > {figures}", f"SLURM_HOSTFILE={hosts} srun -m arbitrary sh -c '{WHERE}'"]
    lines.append(f"{start} sh -c 'echo mpirun $OMPI_COMM_WORLD_RANK$PMI_RANK $(hostname)'")
    said = slurm.job(["sh", "-ec", "\n".join(lines)], options=options)
    told = json.loads(figures.read_text())
    assert (told["warning"], told["slots"]) == ("", slots)
    assert told["source"] == f"auto: scontrol show topology, {automatic.LACKS}"
    assert Counter(told["hosts"]) == dict(zip(told["nodes"], slots, strict=True))
    assert slurm_file(hosts) == told["hosts"]
    assert landed([line for line in said if not line.startswith("mpirun")]) == told["hosts"]
    by_mpirun = {int(rank): host for word, rank, host in (line.split() for line in said) if word == "mpirun"}
    assert [by_mpirun[rank] for rank in range(sum(slots))] == told["hosts"]
    before, after = told["figures"]["maps"].values()
    assert after["across_nodes"] < before["across_nodes"]


@pytest.fixture(scope="module")
def interface(slurm):
    """The value of ``srun --mpi`` that this MPI library speaks."""
    if "--allow-run-as-root" not in mpirun():
        return "pmi2"
    # Slurm's plugin opens this name, which Debian has in libpmix-dev.
    opens = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libpmix.so')"], capture_output=True)
    if opens.returncode or "pmix" not in slurm.run(["srun", "--mpi=list"]).stdout:
        pytest.skip("srun starts no Open MPI here: no pmix plugin, or no libpmix.so")
    return "pmix"


def test_a_placed_mpi4py_job_sees_its_hosts_and_levels_without_options(slurm, tmp_path, interface):
    """Two tasks a node, dealt so that neighbours in rank are on different leaves."""
    order = ["h0000", "h0002", "h0001", "h0003"] * 2
    (tmp_path / "hosts").write_text("\n".join(order) + "\n")
    command = ["srun", f"--mpi={interface}", "-m", "arbitrary", sys.executable, "-c", RANK]
    (line,) = slurm.job(command, {"SLURM_HOSTFILE": str(tmp_path / "hosts"), "PYTHONPATH": str(ROOT)})
    hosts, levels, hops, words = ast.literal_eval(line)
    assert hosts == order
    assert dict(levels)["host"] == [0, 1, 2, 3] * 2
    assert dict(levels)["within 1 hop"] == [0, 1] * 4  # h0000 with h0001, h0002 with h0003
    sorted_hosts = np.argsort(["h0000", "h0002", "h0001", "h0003"])
    assert np.array(hops)[np.ix_(sorted_hosts, sorted_hosts)].tolist() == HOPS
    assert words == f"8 ranks on 4 hosts, topology from auto: {slurm_addresses.NAME}, {automatic.LACKS}"


NOTE = "topompi: srun started 4 tasks, and each is an MPI program of one rank"


def notes(slurm, *command):
    """The notes about worlds of one of a program that makes a communicator."""
    done = slurm.allocated([*command, sys.executable, "-c", RANK], {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return [line[: len(NOTE)] for line in done.stderr.splitlines() if line.startswith("topompi: ")]


def test_only_worlds_of_one_are_noted_and_by_one_task(slurm, interface):
    assert notes(slurm, "srun", "-n4", "--mpi=none") == [NOTE]
    assert notes(slurm, "srun", "-n4", f"--mpi={interface}") == []
    assert notes(slurm, "srun", "-n1", "-N1", "--mpi=none") == []
    assert notes(slurm) == []  # the shell of salloc
    if interface == "pmix":
        assert notes(slurm, "srun", "-n4", "--mpi=pmi2") == [NOTE]
        start = [mpirun()[0], "--allow-run-as-root", "--map-by", "ppr:1:node"]
        assert notes(slurm, *start) == []
        assert notes(slurm, *start[:2], "-n", "1", "--host", "h0002") == []


def test_doctor_in_a_job_knows_slurm_and_agrees_with_its_tree(slurm):
    doctor = [*TOPOMPI, "doctor", "--json", "--topology", "xgft:2,2;1,1"]
    said = json.loads(slurm.allocated(doctor, {"PYTHONPATH": str(ROOT)}).stdout)
    found = {one["what"]: (one["state"], one["says"]) for one in said["findings"]}
    version = re.sub(r"^\S+ ", "", slurm.run(["scontrol", "--version"]).stdout).strip()
    assert found["Slurm"] == ("ok", f"{version}, cluster emulated, answers")
    assert found["Slurm's topology"][0] == "ok"
    assert found["Slurm's topology"][1].endswith("; for 4 nodes it agrees with the topology above")
    assert found["srun --mpi"][0] == "absent"  # MpiDefault=none
    assert found["Slurm's job"][0] == "ok"


def test_the_prolog_of_the_documentation_places_the_tasks_of_a_batch_script(slurm, pairs, tmp_path):
    page = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```sh\n(#!/bin/sh\n[^`]*TASK_GRAPH.*?)```", page, re.DOTALL)
    prolog, script, out, conf = (
        tmp_path / "prolog",
        tmp_path / "job.sh",
        tmp_path / "out",
        slurm.folder / "slurm.conf",
    )
    prolog.write_text(recipe)
    prolog.chmod(0o755)
    script.write_text(f"#!/bin/sh\nsrun sh -c '{WHERE}'\n")
    before = conf.read_text()
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    try:
        conf.write_text(f"{before}TaskProlog={prolog}\n")
        assert slurm.run(["scontrol", "reconfigure"]).returncode == 0
        path = [f"PATH={beside}", f"PYTHONPATH={ROOT}", f"TMPDIR={tmp_path}", f"TASK_GRAPH={pairs(8)}"]
        batch = ["sbatch", "--nodes=4", "--ntasks=8", "--exclusive", f"--output={out}", str(script)]
        done = slurm.run(["env", *path, *batch])
        wait_until(lambda: not slurm.run(["squeue", "--noheader"]).stdout, 60)  # sbatch --wait looks every ten seconds
    finally:
        conf.write_text(before)
        slurm.run(["scontrol", "reconfigure"])
    assert done.returncode == 0, done.stderr
    gain, *lines = out.read_text().splitlines()
    assert gain.startswith("8 tasks on 4 of 4 nodes; bytes across nodes ")
    (hosts,) = tmp_path.glob("hosts.*")
    assert landed(lines) == slurm_file(hosts)
    assert all(a == b for a, b in zip(slurm_file(hosts)[:4], slurm_file(hosts)[4:], strict=True))


def test_the_batch_script_of_the_documentation_runs_a_program_with_its_kit(slurm, pairs, tmp_path):
    if "--allow-run-as-root" not in mpirun():
        pytest.skip("this Python runs with MPICH, and the page's script is for Open MPI")
    page = (ROOT / "docs" / "any-program.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sh\n(#!/bin/sh\n#SBATCH.*?)```", page, re.DOTALL)
    for word, here in (("16", "4"), ("node=4", "node=2"), ("ppn 4", "ppn 2"), ("fabric.json", "'xgft:2,2;1,1'")):
        assert word in script
        script = script.replace(word, here)
    (tmp_path / "app.topoprof").write_text(Path(pairs(8)).read_text())
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "app").write_text(
        '#!/bin/sh\necho "$OMPI_COMM_WORLD_RANK $(hostname) $OMPI_MCA_coll_tuned_dynamic_rules_filename"\n'
    )
    (tmp_path / "app").chmod(0o755)
    beside = os.pathsep.join((str(Path(mpirun()[0]).parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    batch = ["sbatch", f"--output={tmp_path / 'out'}", f"--chdir={tmp_path}", str(tmp_path / "job.sh")]
    done = slurm.run(["env", f"PATH={beside}", f"PYTHONPATH={ROOT}", f"TMPDIR={tmp_path}", *batch])
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not slurm.run(["squeue", "--noheader"]).stdout, 60)
    said = (tmp_path / "out").read_text()
    ran = dict(re.findall(r"^(\d+) (\S+) \S*/kit\.\d+/rules\.conf$", said, re.MULTILINE))
    assert sorted(map(int, ran)) == list(range(8)), said
    assert all(ran[str(rank)] == ran[str(rank + 4)] for rank in range(4))
    assert sorted(ran.values()) == sorted(2 * slurm.hosts)
