"""The benchmark: its command through real MPI jobs."""

import json
import re
import statistics
from pathlib import Path

import pytest

from osu_like_bench.cli import main as bench
from osu_like_bench.compare import main as compare
from osu_like_bench.kernels import KERNELS
from osu_like_bench.record import Record
from osu_like_bench.table import ABSENT, OPERATIONS
from tests.bench.test_kernels import TREE
from tests.support import ROOT, run_mpi

BENCH = ("-m", "osu_like_bench")
FEW = ("-i", "3", "-x", "1")


def lines(printed: list[str]) -> list[list[str]]:
    """The rows of a table, cell by cell."""
    return [line.split() for line in printed if line and not line.startswith("#")]


# The command

ALL = """
import sys
from mpi4py import MPI
from osu_like_bench.cli import main
from osu_like_bench.table import OPERATIONS
codes = {}
for name, kind in OPERATIONS.items():
    if kind.pairs and MPI.COMM_WORLD.size % 2:
        continue
    rotate = ["--root", "rotate"] if kind.rooted else []
    sizes = ["-m", "16:16"] if kind.sized and not kind.atomic else []
    if MPI.COMM_WORLD.rank == 0:
        print("#", name)
    codes[name] = main([name, "-c", "-i", "2", "-x", "0", *rotate, *sizes, *sys.argv[1:]])
assert not any(codes.values()), codes
"""


@pytest.mark.parametrize(
    ("size", "sides"), [(4, ()), *(pytest.param(n, ("--vs", "native"), marks=pytest.mark.long) for n in (2, 3))]
)
def test_every_benchmark_moves_the_right_data_on_every_side(size: int, sides: tuple[str, ...]) -> None:
    job = run_mpi(size, "-c", ALL, "--hosts", "a,b", *sides, timeout=300)
    assert job.returncode == 0, job.stderr
    kinds = [kind for kind in OPERATIONS.values() if not (kind.pairs and size % 2)]
    rows = lines(job.stdout.splitlines())
    assert len(rows) == len(kinds)
    assert all(row[-1] == "Pass" for row in rows)
    assert job.stdout.count(f"# Placement: virtual, {size} ranks on 2 hosts of ") == len(kinds) > 70


def test_one_rank_is_enough_for_collectives() -> None:
    job = run_mpi(1, *BENCH, "alltoallv", *FEW, "-m", "8", "-c")
    assert job.returncode == 0, job.stderr
    assert [row[0] for row in lines(job.stdout.splitlines())] == ["1", "2", "4", "8"]


PAIR = """
import json, sys
from mpi4py import MPI
from osu_like_bench.cli import main
for words in json.loads(sys.argv[1]):
    if MPI.COMM_WORLD.rank == 0:
        print("#####", flush=True)
    assert not main(words), words
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], Path]]:
    """Runs on two ranks, one after another in one job: the lines of each, and its record."""
    folder, few = tmp_path_factory.mktemp("pair"), list(FEW)
    runs = {
        "comparison": ["allreduce", "-m", "8:16", "-i", "25", "-x", "2", "--vs", "native"],
        "full": ["bcast", "--only", "native", "-f", "-m", "4:8", *few, "--topology", "/no/such/file"],
        "memory": ["alltoall", *few, "-m", "64:1K", "-M", "1K"],
    }
    words = [[*run, "--json", str(folder / name)] for name, run in runs.items()]
    job = run_mpi(2, "-c", PAIR, json.dumps(words))
    assert job.returncode == 0, job.stderr
    parts = job.stdout.split("#####\n")[1:]
    return {name: (part.splitlines(), folder / name) for name, part in zip(runs, parts, strict=True)}


def test_a_comparison_prints_both_sides_and_what_its_record_says(pair) -> None:
    printed, path = pair["comparison"]
    header = next(line for line in printed if line.startswith("# Size"))
    assert re.split(r"\s{2,}", header) == [
        "# Size",
        "topompi(us)",
        "native(us)",
        "Ratio",
        "95% interval",
        "Verdict",
    ]
    record = Record.from_json(path.read_text())
    assert [(result.size, result.side) for result in record.results] == [
        (size, side) for size in (8, 16) for side in ("topompi", "native")
    ]
    assert all(len(result.samples) == 25 and result.valid is None for result in record.results)
    assert record.facts.ranks == len(record.facts.hosts) == len(record.facts.affinity) == 2
    assert record.facts.virtual is False
    for row, first, second in zip(lines(printed), record.results[::2], record.results[1::2], strict=True):
        medians = [statistics.median(result.samples) for result in (first, second)]
        assert row[:3] == [f"{first.size}", *(f"{median * 1e6:.2f}" for median in medians)]
        assert float(row[3]) == pytest.approx(medians[1] / medians[0], abs=0.0051)
        assert re.search(r"\] +(\d+\.\d\dx (faster|slower)|not significant)$", " ".join(row))


def test_full_output_has_osu_columns_and_only_native_needs_no_topology(pair) -> None:
    printed, path = pair["full"]
    # OSU's own line, version 7
    assert printed[-3] == "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
    for row in lines(printed):
        average, least, most = map(float, row[1:4])
        assert least <= average <= most
        assert row[4] == "3"
    assert all(
        max(result.samples) >= result.maximum >= result.average >= result.minimum > 0
        for result in Record.from_json(path.read_text()).results
    )


def test_sizes_beyond_the_memory_limit_are_left_out_and_named(pair) -> None:
    printed, _ = pair["memory"]
    assert [row[0] for row in lines(printed)] == ["64", "128", "256"]
    assert "# Left out: sizes above 256" in "\n".join(printed)


COLUMNS = """
from osu_like_bench.cli import main
few = ["-m", "64:64", "-i", "20", "-x", "2", "--only", "native"]
codes = [
    main(["ibcast", *few]),
    main(["ibcast", *few, "-t", "5", "--json", "RECORD"]),
    main(["mbw_mr", *few, "-W", "8"]),
    main(["bcast", *few, "-z"]),
    main(["bw", *few, "-z", "P25,75"]),
    main(["ibcast", *few[:-2], "--vs", "native"]),
    main(["osu_put_bw", *few, "-f"]),
]
assert not any(codes), codes
"""


def test_columns_are_those_of_osu_and_agree_with_each_other(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    job = run_mpi(2, "-c", COLUMNS.replace("RECORD", str(path)))
    assert job.returncode == 0, job.stderr
    heads = [re.split(r"\s{2,}", line) for line in job.stdout.splitlines() if line.startswith("# Size")]
    table = lines(job.stdout.splitlines())
    overlap = ["# Size", "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"]
    assert heads[:2] == [overlap, overlap]
    assert job.stdout.count("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait") == 3
    for row in table[:2]:
        overall, compute, pure, hidden = map(float, row[1:])
        assert 0 < compute < overall
        assert hidden == pytest.approx(min(max(100 - 100 * (overall - compute) / pure, 0), 100), abs=2)
    (result,) = Record.from_json(path.read_text()).results
    assert result.more["Compute(us)"] * 1e6 == pytest.approx(float(table[1][2]), abs=0.01)
    assert heads[2] == ["# Size", "MB/s", "Messages/s"]
    assert "# [ pairs: 1 ] [ window size: 8 ]" in job.stdout
    assert float(table[2][2]) * 64 == pytest.approx(float(table[2][1]) * 1e6, abs=0.006e6)
    assert heads[3][2:] == ["P50 Tail Lat(us)", "P90 Tail Lat(us)", "P99 Tail Lat(us)"]
    assert sorted(map(float, table[3][2:])) == list(map(float, table[3][2:]))
    assert heads[4][2:] == ["P25 Tail BW(MB/s)", "P75 Tail BW(MB/s)"]
    assert float(table[4][2]) >= float(table[4][3]) > 0
    assert heads[5][3:5] == ["topompi Overlap(%)", "native Overlap(%)"]
    headings = [line.partition(",")[0] for line in job.stdout.splitlines() if line.startswith("# OSU-like")]
    assert headings[2] == "# OSU-like MPI Multiple Bandwidth / Message Rate Test"
    assert headings[6] == "# OSU-like MPI_Put Bandwidth Test"
    assert "# Window creation: MPI_Win_allocate\n# Synchronization: MPI_Win_flush\n" in job.stdout
    assert heads[6][1:] == ["Avg Bandwidth(MB/s)", "Min Bandwidth(MB/s)", "Max Bandwidth(MB/s)", "Iterations"]


def test_the_documentation_says_why_benchmarks_of_osu_are_not_here() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    told = re.findall(r"^- `osu_([^`]+)`: (.*)\.$", text, re.MULTILINE)
    assert dict(told) == ABSENT
    assert not set(ABSENT) & set(OPERATIONS)


# Wrong use

WRONG = """
import sys
from mpi4py import MPI
from osu_like_bench.cli import main
cases = [
    "bcast -m 12x", "bcast --root 2", "allgather --root 0", "bcast --place block", "reduce -m 6:8",
    "bcast --hosts a,b --place odd", "bcast --hosts a[1-", "bcast --json /no/such/place", "barrier -m 8",
    "bcast --vs native --only native", "bcast --lfts x", "bcast --topology /no/such/file", "bcast -M 0",
    "bcast -m 8:16 -M 4", "bcast -d cuda", "bcast -W 8", "bcast -t 3", "bw -z x", "fop_latency -m 8", "cg -W 4",
]
codes = [main(case.split()) for case in cases]
assert codes == [1] * len(cases), codes
usage = ["", "bcats", "osu_latency_mt", "bcast -i 0", "bcast -i x", "bcast --vs other", "bcast --only none"]
usage.append("bcast --odd")
codes = [main(case.split()) for case in usage]
assert codes == [2] * len(usage), codes
"""


def test_wrong_use_is_said_once_in_a_line_and_all_ranks_return_alike() -> None:
    job = run_mpi(2, "-c", WRONG)
    assert job.returncode == 0, job.stderr
    said = job.stderr.strip().splitlines()
    assert len(said) == 20 + 8, job.stderr
    assert all(line.startswith("osu_like_bench: ") for line in said), job.stderr
    assert "expecting a benchmark such as bcast, ibcast (--help lists all), got 'bcats'" in said[21]
    assert said[22].endswith(f"osu_latency_mt is not here: {ABSENT['latency_mt']}")
    assert not lines(job.stdout.splitlines())


@pytest.mark.parametrize(
    ("size", "arguments", "code"),
    [(2, ["nonsense"], 2), (2, ["bcast", "-m", "8:4"], 1), (1, ["bw"], 1)],
)
def test_wrong_use_ends_the_job_with_its_exit_code(size: int, arguments: list[str], code: int) -> None:
    job = run_mpi(size, *BENCH, *arguments, timeout=30)
    assert job.returncode == code, job.stderr
    assert len(re.findall("^osu_like_bench: ", job.stderr, re.MULTILINE)) == 1, job.stderr
    assert "Traceback" not in job.stderr


def test_help_is_heard_once() -> None:
    job = run_mpi(2, *BENCH, "--help")
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("Usage") == 1


# Wrong data: validation must fail where a communicator does its work badly

BROKEN = """
import sys
import numpy as np
import topompi
from osu_like_bench.cli import main

Sound = topompi.Intracomm

class Wrong(Sound):
    def Allreduce(self, send, receive, *args):
        super().Allreduce(send, receive, *args)
        if self.rank == self.size - 1:
            receive[0][0, 0] += 1

    def Barrier(self):
        pass

for name, size in (("allreduce", ["-m", "4"]), ("barrier", [])):
    for kind, code in ((Wrong, 1), (Sound, 0)):
        topompi.Intracomm = kind
        assert main([name, "-c", "-i", "1", "-x", "0", *size]) == code, (name, kind)
"""


def test_wrong_data_fails_the_command() -> None:
    job = run_mpi(3, "-c", BROKEN)
    assert job.returncode == 0, job.stderr
    assert [row[-1] for row in lines(job.stdout.splitlines())] == ["Fail", "Pass"] * 2
    assert job.stdout.count("# Fail: wrong data: topompi at ") == 2


FLIPPED = """
import numpy as np
from mpi4py import MPI
from osu_like_bench.barrier import Barrier
from osu_like_bench.remote import Remote
from osu_like_bench.table import OPERATIONS

world = MPI.COMM_WORLD

def flipped(kind):
    class Flipped(kind):
        def bind(self, comm, root):
            call = super().bind(comm, root)
            if isinstance(self, Barrier):
                return lambda: None
            if isinstance(self, Remote) and self.changes:
                return lambda: (self.flip(self.send, 0), call(), self.flip(self.send, 0))
            at = 0 if isinstance(self, Remote) or self.rooted and name.lstrip("i")[:2] in ("ga", "re") else 1
            at = world.size - 1 if self.pairs else at
            return lambda: (call(), self.flip(self.receive, at))
        def flip(self, buffer, rank):
            if self.rank == rank:
                buffer.view(np.uint8)[-1, -1] ^= 1
    return Flipped

for name, kind in OPERATIONS.items():
    for wrong in (False, True):
        with kind.seated({"native": world}) as (seats, _):
            test = (flipped(kind) if wrong else kind)(world.rank, world.size, 8 if kind.atomic else 16)
            takes_part = test.pairs or not test.paired or world.rank < 2
            right = not takes_part or test.verify(seats["native"], world, 0)
        assert world.allreduce(right, MPI.LAND) == (not wrong), (name, wrong)
if world.rank == 0:
    print(len(OPERATIONS), "benchmarks")
"""


@pytest.mark.parametrize("size", [4])
def test_one_wrong_bit_on_one_rank_fails_every_validation(size: int) -> None:
    job = run_mpi(size, "-m", "mpi4py", "-c", FLIPPED)
    assert job.returncode == 0, job.stderr
    assert job.stdout == f"{len(OPERATIONS)} benchmarks\n"


ONE_SIDED = """
import sys
import topompi
from osu_like_bench.cli import main

class Odd(topompi.Intracomm):
    def Bcast(self, buffer, root=0):
        if self.rank == 1:
            raise KeyError("only here")
        super().Bcast(buffer, root)

topompi.Intracomm = Odd
sys.exit(main(["bcast", "-m", "4"]))
"""


def test_trouble_on_one_rank_ends_the_job_and_names_the_rank() -> None:
    job = run_mpi(3, "-c", ONE_SIDED, timeout=30)
    assert job.returncode != 0
    assert "osu_like_bench: rank 1: KeyError: 'only here'" in job.stderr
    assert "Traceback" not in job.stderr


# --- Communication kernels under mpirun, on both sides.


# --- real ---


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.long
def test_all_kernels_run_validated_on_both_sides_and_notice_what_is_missing(size):
    done = run_mpi(size, ROOT / "tests" / "programs" / "kernels.py", timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all done" in done.stderr
    assert done.stdout.count("Pass") >= 2 * len(KERNELS)
    assert "topompi's order of ranks" in done.stdout
    if size > 1:
        assert re.search("; [1-9] ranks moved", done.stdout), "a random order can be improved"


def test_a_collective_takes_no_options_of_kernels(capsys):
    assert bench(["gather", "--reorder", "none"]) == 1
    assert capsys.readouterr().err.count("--reorder: expecting a kernel") == 1


def test_records_of_the_two_orders_compare(tmp_path):
    files = [str(tmp_path / f"{name}.json") for name in ("topompi", "none")]
    common = ["-m", "64", "-i", "20", "-x", "1", "--topology", TREE, "--hosts", "h[0000-0003]", "--place", "random:1"]
    runs = [["stencil3d", *common, "--reorder", Path(file).stem, "--json", file] for file in files]
    done = run_mpi(4, "-c", f"from osu_like_bench.cli import main; assert not any(map(main, {runs!r}))")
    assert done.returncode == 0, done.stderr
    assert [json.loads(Path(file).read_text())["options"]["reorder"] for file in files] == ["topompi", "none"]
    assert compare(files) == 0
