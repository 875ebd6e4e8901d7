"""Profiles, their files, and the bounds of a machine: values computed by hand, and refusals."""

import json
import math
from pathlib import Path

import pytest

from tests.support import refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.profiles.collecting import profile_of
from topompi.machine.colocation.profiles.files import PROFILES, read_profiles, write_profiles
from topompi.machine.colocation.profiles.mpip import is_mpip, read_mpip
from topompi.machine.colocation.profiles.perf import EVENTS, OPERATIONS, is_perf, metrics_of, operations_of, read_perf
from topompi.machine.colocation.profiles.record import Profile
from topompi.machine.colocation.profiles.system import System

EP = Profile("ep", 4, 1, 9.0, 3e9, 1e6, 0.01, 1e6, 1e4)
MG = Profile("mg", 4, 1, 9.0, 1e9, 6e9, 0.2, 2e6, 5e5)


def test_observed_bounds_are_the_most_of_each_metric_with_room_for_flops_and_stream_for_memory():
    found = System.observed("m", [EP, MG], 7e9)
    assert (found.flops, found.memory, found.hits, found.misses, found.mpi) == (1.05 * 3e9, 7e9, 2e6, 5e5, 1.0)
    assert System.observed("m", [EP, MG], 0).memory == 6e9
    tag = found.tag(MG)
    assert (tag.flops, tag.memory, tag.mpi, tag.hits, tag.misses) == (1 / 3.15, 6 / 7, 0.2, 1.0, 1.0)
    few = [Profile("x", flops=1.0, memory=1.0, hits=1.0)]
    assert "misses: expecting a profile with a positive value" in refusal(
        System.observed, "m", few, 0, error=ColocationError
    )


def test_impossible_values_are_refused_by_name():
    for wrong, words in (
        ({"mpi": 1.5}, "mpi: expecting a share in [0, 1], got 1.5"),
        ({"operations": -1.0}, "operations: expecting a number from 0, got -1"),
        ({"shares": {"Wait": 0.6, "Send": 0.5}}, "shares: expecting shares that add up to at most 1, got 1.100"),
        ({"shares": {"Wait": -0.1}}, "shares: Wait: expecting a share in [0, 1], got -0.1"),
        ({"seconds": 0.0}, "seconds: expecting a positive time, got 0"),
    ):
        assert words in refusal(lambda wrong=wrong: Profile("p", **wrong), error=ColocationError)


def test_a_file_with_a_program_twice_or_an_unknown_field_is_refused(tmp_path: Path):
    for programs, words in (
        ([{"program": "a"}, {"program": "a"}], "programs: expecting each program once, got 'a' twice"),
        ([{"program": "a", "speed": 1}], "programs[0]: expecting fields of a profile, got 'speed'"),
        ([{"program": "a", "nodes": 1.5}], "programs[0]: nodes: expecting a whole number from 0, got 1.5"),
    ):
        (tmp_path / "p.json").write_text(json.dumps({**PROFILES, "programs": programs}))
        assert words in refusal(read_profiles, tmp_path / "p.json", error=ColocationError)


# --- Readers of perf stat and mpiP, against values that were computed by hand.


TEXT = """
 Performance counter stats for './bt.C.4':

     1,000,000,000      FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE                                     (50.00%)
       500,000,000      FP_COMP_OPS_EXE:SSE_SCALAR_DOUBLE:u
        20,000,000      OFFCORE_RESPONSE_0:LLC_MISS_LOCAL
         5,000,000      OFFCORE_RESPONSE_0:LLC_MISS_REMOTE
       100,000,000      LLC_REFERENCES            #  10.000 M/sec
        30,000,000      LLC_MISSES                #   30.00 % of all cache refs
          9,998.12 msec task-clock                #    0.999 CPUs utilized

      10.000000000 seconds time elapsed

       9.990000000 seconds user
"""
CSV = """# started on Thu Nov 26 20:00:00 2026

1000000000,,FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE,9998123456,50.00,,
<not supported>,,OFFCORE_RESPONSE_0:LLC_MISS_LOCAL,0,100.00,,
<not counted>,,LLC_MISSES,0,0.00,,
100000000,,LLC_REFERENCES,9998123456,100.00,10.0,M/sec
9998.12,msec,task-clock,9998123456,100.00,0.999,CPUs utilized
"""
# The sample of the source (figure 2.7), with three of its 3,840 callsites made up.
MPIP = """@ mpiP
@ MPI Task Assignment      : 0 n1
@ MPI Task Assignment      : 1 n1
@ MPI Task Assignment      : 2 n2
@--- Task Time Statistics (seconds) ---
           AppTime       MPITime      MPI%   App Task  MPI Task
Max        67.394348     32.828762           0         254
Mean       67.380640     27.237899
Min        67.310791     26.029214           1         132
Stddev     0.023954      1.012329
Aggregate  17249.443965  6972.902038  40.42
@--- Aggregate Time (top twenty, descending, milliseconds) ---
Call Site Time App% MPI% Count COV
Alltoall 3813 2.49e+04 0.14 0.36 25 0.00
@--- Callsite Time statistics (all, milliseconds): 3 ------------------
Name              Site Rank  Count      Max     Mean      Min   App%   MPI%
Alltoall             1    0     25     1200     1000      900   0.14   0.36
Alltoall             1    *     25     1200     1000      900   0.14   0.36
Barrier              2    0     10      200      100       50   0.01   0.02
Waitall              3    1      4     6000     6000     6000   0.01   0.02
---------------------------------------------------------------------------
@--- End of Report ---
"""


def test_the_formulas_sum_over_ranks_and_divide_by_nodes_and_seconds():
    counts = read_perf([("rank0", TEXT), ("rank1", TEXT + TEXT)])
    assert counts.seconds == 10
    found = metrics_of(counts, nodes=2, seconds=counts.seconds)
    assert found == {"flops": 3 * 1.5e9 / 20, "memory": 3 * 25e6 * 64 / 20, "misses": 9e7 / 20, "hits": 2.1e8 / 20}
    assert counts.shared == {"FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE"}


def test_counts_that_perf_does_not_have_are_unknown_and_not_zero():
    counts = read_perf([("csv", CSV)])
    assert counts.unknown == {"OFFCORE_RESPONSE_0:LLC_MISS_LOCAL": "not supported", "LLC_MISSES": "not counted"}
    assert metrics_of(counts, 1, 10.0) == {"flops": 1e8}
    both = metrics_of(read_perf([("csv", CSV), ("text", TEXT)]), 1, 10.0)
    assert set(both) == {"flops"}
    assert math.isnan(counts.seconds)
    assert counts.shared == {"FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE"}
    assert metrics_of(read_perf([("s", CSV.replace(",", ";"))]), 1, 10.0) == {"flops": 1e8}


def test_the_run_time_is_that_of_the_slowest_rank_in_either_form():
    short = TEXT.replace("10.000000000 seconds", "4.000000000 seconds")
    for order in ((TEXT, short), (short, TEXT)):
        assert read_perf([(str(at), text) for at, text in enumerate(order)]).seconds == 10
    counted = [
        ("a", CSV + "3000000000,ns,duration_time,3000000000,100.00,,\n"),
        ("b", CSV + "2000000000,ns,duration_time\n"),
    ]
    assert read_perf(counted).seconds == 3


def test_raw_codes_are_counted_by_a_map_of_events():
    raw = " 7,000  r1a8\n 1.0 seconds time elapsed\n"
    assert metrics_of(read_perf([("raw", raw)]), 1, 1.0) == {}
    assert metrics_of(read_perf([("raw", raw)]), 1, 1.0, {"r1a8": "flops"}) == {"flops": 7000.0}


SKYLAKE = """
 Performance counter stats for './lu':

     1,000      fp_arith_inst_retired.scalar_double
       200      fp_arith_inst_retired.128b_packed_double:u
        50      fp_arith_inst_retired.256b_packed_double
        10      fp_arith_inst_retired.512b_packed_double
         3      fp_arith_inst_retired.512b_packed_single

       2.000000000 seconds time elapsed
"""


def test_operations_count_packed_instructions_by_their_width_and_flops_do_not(tmp_path):
    counts = read_perf([("rank0", SKYLAKE), ("rank1", SKYLAKE)])
    assert metrics_of(counts, 4, 2.0) == {"flops": 2 * 1260 / 8}
    assert operations_of(counts, 4, 2.0) == 2 * (1000 + 2 * 200 + 4 * 50 + 8 * 10 + 16 * 3) / 8
    old = "7 FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE\n 5 SIMD_FP_256:PACKED_DOUBLE\n 3 FP_COMP_OPS_EXE:SSE_SCALAR_DOUBLE\n"
    ivy = read_perf([("ivy", old)])
    assert (metrics_of(ivy, 1, 1.0), operations_of(ivy, 1, 1.0)) == ({"flops": 10.0}, 2 * 7 + 4 * 5 + 3)
    unknown = read_perf([("ivy", old), ("ivy2", "<not counted> SIMD_FP_256:PACKED_DOUBLE\n")])
    assert math.isnan(operations_of(unknown, 1, 1.0))
    assert metrics_of(unknown, 1, 1.0) == {"flops": 10.0}
    assert math.isnan(operations_of(read_perf([("raw", "7 r1a8\n")]), 1, 1.0))
    made, _ = profile_of("lu", [("rank0", SKYLAKE)], nodes=4)
    write_profiles(tmp_path / "lu.json", [made])
    assert read_profiles(tmp_path / "lu.json")[0].operations == (1000 + 2 * 200 + 4 * 50 + 8 * 10 + 16 * 3) / 8


def test_every_event_of_flops_has_its_operations():
    assert {event for event, quantity in EVENTS.items() if quantity == "flops"} <= OPERATIONS.keys()


def test_the_report_of_the_source_is_read():
    report = read_mpip("mpip", MPIP)
    assert (report.mpi, report.seconds, report.processes, report.nodes) == (0.4042, 67.394348, 3, 2)
    assert report.shares == {"Alltoall": 0.5, "Barrier": 0.02, "Waitall": 0.48}
    top_twenty_alone = MPIP.partition("@--- Callsite")[0]
    assert read_mpip("mpip", top_twenty_alone).shares == {}


def test_the_section_of_mpip_3_is_read():
    head = "@ mpiP\n@--- MPI Time (seconds) ---\nTask    AppTime    MPITime     MPI%\n"
    ranks = ["   0  4.0  1.0 25.0\n", "   1  6.0  1.5 25.0\n"]
    for rows in (ranks, ranks[::-1]):
        report = read_mpip("m", f"{head}{''.join(rows)}   *  10.0  2.5 25.0\n")
        assert (report.mpi, report.seconds) == (0.25, 6.0)


HYBRID = """
 Performance counter stats for './app' (3 runs):

          9,998.12 msec task-clock:u                #    0.999 CPUs utilized            ( +-  0.10% )
    24,000,000,000      cpu_core/cycles/u           #    3.400 GHz                         (85.71%)
     1,000,000,000      cpu_core/L1-dcache-loads/u  #  100.0 M/sec                         (42.85%)
        90,000,000      cpu_core/LLC-loads/u        #    2.000 M/sec                         (28.57%)
        10,000,000      cpu_core/LLC-load-misses/u  #    8.50% of all LL-cache accesses  (28.58%)
        10,000,000      cpu_atom/LLC-loads/u        ( +-  1.00% )
     <not counted>      cpu_atom/L1-dcache-loads/u                                              (0.00%)
         2,000,000      cpu_atom/LLC-load-misses/u

           10.0000 +- 0.2 seconds time elapsed  ( +-  2.00% )
"""
JSON = """{"counter-value" : "100.000000", "unit" : "", "event" : "LLC-loads", "pcnt-running" : 50.00}
{"counter-value" : "<not counted>", "unit" : "", "event" : "cycles", "event-runtime" : 0, "pcnt-running" : 0.00}
{"counter-value" : "40.000000", "unit" : "", "event" : "armv8_pmuv3_1/LLC-load-misses/", "pcnt-running" : 100.00, }
{"counter-value" : "2000000000", "unit" : "ns", "event" : "duration_time"}
"""
LIKWID = """TABLE,Group 1 Raw,MEM_DP,4,
Event,Counter,HWThread 0,HWThread 1
INSTR_RETIRED_ANY,FIXC0,123,456
FP_ARITH_INST_RETIRED_SCALAR_DOUBLE,PMC1,1000,3000
FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE,PMC3,10,10
CAS_COUNT_RD,MBOX0C0,500,0
CAS_COUNT_WR,MBOX0C1,100,0
TABLE,Group 1 Raw STAT,MEM_DP,4,,
Event,Counter,Sum,Min,Max,Avg
CAS_COUNT_RD STAT,MBOX0C0,500,0,500,250
TABLE,Group 1 Metric,MEM_DP,2,
Metric,HWThread 0,HWThread 1,
Runtime (RDTSC) [s],2.0,1.9,
TABLE,Group 1 Metric STAT,MEM_DP,2,
Metric,Sum,Min,Max,Avg
Runtime (RDTSC) [s] STAT,3.9,1.9,2.0,1.95
"""
SLURM = "JobID|NNodes|NTasks|Elapsed|MaxRSS|AveCPU\n1.0|2|64|00:01:30|1024K|00:01:40\n1.1|1||1-00:00:10||\n"


def test_cache_events_of_all_kinds_of_cores_are_summed():
    counts = read_perf([("hybrid", HYBRID)])
    assert (counts.seconds, counts.unknown) == (10, {"cpu_atom/L1-dcache-loads/u": "not counted"})
    assert metrics_of(counts, 2, 10.0) == {"misses": 12e6 / 20, "hits": 88e6 / 20}
    assert "cpu_core/LLC-loads/u" in counts.shared
    assert "cpu_atom/LLC-loads/u" not in counts.shared


def test_json_of_perf_is_read_as_its_text():
    counts = read_perf([("json", JSON)])
    assert (counts.seconds, counts.unknown, counts.shared) == (2, {"cycles": "not counted"}, {"LLC-loads"})
    assert metrics_of(counts, 1, 2.0) == {"misses": 20.0, "hits": 30.0}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_events_that_count_the_same_accesses_are_counted_once(order):
    rows = ["cache-references", "cache-misses", "LLC-loads", "LLC-load-misses", "LLC_REFERENCES"]
    values = [100, 30, 50, 20, 999]  # LLC_REFERENCES has no misses beside it, so that it is no whole row
    lines = [f"{values[at]} {rows[at]}\n" for pair in order for at in ((0, 1), (2, 3), (4,))[pair]]
    assert metrics_of(read_perf([("x", "".join(lines))]), 1, 1.0) == {"misses": 30.0, "hits": 70.0}


def test_tables_of_likwid_are_summed_over_threads():
    found, remarks = profile_of("a", [("likwid", LIKWID)], nodes=1)
    assert (found.seconds, found.flops, found.memory, found.operations) == (2, 4020 / 2, 600 * 64 / 2, 4080 / 2)
    assert not remarks


def test_fields_of_slurm_give_ranks_nodes_and_time_beside_counts():
    found, _ = profile_of("a", [("sacct", SLURM), ("perf", HYBRID)])
    assert (found.nodes, found.processes, found.seconds) == (2, 64, 86410)
    assert found.misses == 12e6 / 2 / 86410


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SLURM, "x: expecting counts, which Slurm lacks, got none; count by perf stat"),
        ("JobID|MaxRSS|AveCPU\n1|2K|00:01\n", "expecting one of NNodes, NTasks, Elapsed, ElapsedRaw, got JobID|MaxRSS"),
        (SLURM.replace("|00:01:30|", "|soon|"), "x:2: Elapsed: expecting a number or a time, got 'soon'"),
        (SLURM + "2|3\n", "x:4: expecting 6 fields, got 2"),
        (
            "5 cycles\n2.0 seconds time elapsed\n",
            "x: expecting events of known quantity, got cycles; count by perf",
        ),
        (JSON.replace("LLC", "L2"), "expecting events of known quantity"),
        (LIKWID.replace("CAS", "CAR").replace("FP_", "EP_"), "expecting events of known quantity"),
    ],
)
def test_reports_without_counts_are_refused_with_the_commands_that_give_them(text: str, told: str):
    text = text.replace("<not counted>", "7")
    assert told in refusal(lambda: profile_of("a", [("x", text)], nodes=1), error=ColocationError)


def test_texts_are_told_apart():
    assert [is_perf(one) for one in (TEXT, CSV, HYBRID, JSON, LIKWID, MPIP)] == [True] * 5 + [False]
    assert [is_mpip(one) for one in (TEXT, CSV, MPIP)] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            MPIP.replace("Aggregate  1", "Aggregat 1"),
            "mpip: expecting the aggregate line of mpiP's task times, got none",
        ),
        (MPIP.replace("40.42", "140.42"), "mpip:11: expecting times of MPI below those of the program"),
        (MPIP.replace("40.42", "x"), "mpip:11: expecting a number from 0, got 'x'"),
        (MPIP.replace("Barrier              2    0", "Barrier 2 zero"), "mpip:19: expecting name, site, rank"),
    ],
)
def test_a_wrong_report_is_refused_with_its_line(text: str, problem: str):
    assert problem in refusal(read_mpip, "mpip", text, error=ColocationError)


def test_other_texts_are_no_counts_and_contradictory_counts_are_refused():
    assert refusal(read_perf, [("x", "hello")], error=ColocationError) == (
        "x: expecting the output of perf stat or LIKWID, got no counts"
    )
    few = read_perf([("x", TEXT.replace("100,000,000", "1,000"))])
    assert "as many LLC references as misses" in refusal(metrics_of, few, 1, 1.0, error=ColocationError)
