"""Tables of squeue, sinfo and scontrol in the formats that their users choose, with and without headings."""

import json
from pathlib import Path

import pytest

from topompi.errors import TopompiError
from topompi.inputs.hostlist import expand
from topompi.inputs.slurm.nodes import read_closed
from topompi.inputs.slurm.running import read_running

BARE = """   101     batch    a job     ann  R    1:02:03      4 n[0-3]
   102     batch interac+     bob CG       0:10      2 n[4-5]
 103_[1-9] batch      arr     bob PD       0:00      2 (Resources)
   104_2   batch      arr     bob  R       0:00      1 n6
   105     batch     long     eve PD       0:00      8 (ReqNodeNotAvail, UnavailableNodes:n[7,9])
   106     batch  run (2)     eve  S       0:00      1 n8
   108+0   batch      het     eve CF       0:00      1 n10
"""
HEADING = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
BARE_HELD = {"101": "n[0-3]", "102": "n[4-5]", "104_2": "n6", "106": "n8", "108+0": "n10"}
LONG_STATES = "JOBID,STATE,NODELIST(REASON)\n101,RUNNING,n[0-3,5]\n102,PENDING,(Priority)\n103,SIGNALING,n6\n"
SCONTROL = """JobId=101 JobName=a
   UserId=ann(1) JobState=RUNNING Reason=None
   ReqNodeList=n9 ExcNodeList=(null)
   NodeList=n[0-3]
   NumNodes=4 Comment=JobId=5 NodeList=n9

JobId=102 JobName=b
   JobState=PENDING
   NodeList=(null)

JobId=103 ArrayJobId=100 ArrayTaskId=3 JobState=COMPLETING NodeList=n4
"""


def listed(states: list[str] | str, nodes: str, **more: object) -> str:
    return json.dumps({"jobs": [{"job_id": 1, "job_state": states, "nodes": nodes, **more}]})


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (BARE, BARE_HELD),
        (HEADING + BARE, BARE_HELD),
        (LONG_STATES, {"101": "n[0-3,5]", "103": "n6"}),
        ("JOBID|NAME|NODELIST|STATE\n101|a|b|n[0-3]|RUNNING\n", {"101": "n[0-3]"}),
        ('"JOBID","NODELIST"\n"101","n[0-3,5]"\n', {"101": "n[0-3,5]"}),
        ("ARRAY_JOB_ID JOBID NODES NODELIST\n100 101 4 n[0-3]\n", {"101": "n[0-3]"}),
        ("JOBID NODES ST NODELIST\n101 4 CG n[0-1]\n", {"101": "n[0-1]"}),
        ("JOBID NODES NODELIST\n101 1K n[1-1024]\n", {"101": "n[1-1024]"}),
        (HEADING, {}),
        (SCONTROL, {"101": "n[0-3]", "103": "n4"}),
        (SCONTROL.replace("\n   ", " "), {"101": "n[0-3]", "103": "n4"}),
        (listed("COMPLETED+COMPLETING", "n0"), {"1": "n0"}),
        (listed("COMPLETING+", "n0"), {"1": "n0"}),
        (listed(["RUNNING"], "", job_resources={"nodes": "n[0-3]"}), {"1": "n[0-3]"}),
        (listed(["RUNNING"], "", job_resources={"nodes": {"count": 4, "list": "n[0-3]"}}), {"1": "n[0-3]"}),
        (
            '%YAML 1.1\n---\n!!map\n"jobs": !!seq\n- "job_id": !!int 1\n  "job_state": [RUNNING]\n  "nodes": n0\n',
            {"1": "n0"},
        ),
    ],
)
def test_jobs_hold_the_nodes_that_slurm_prints_in_any_format(text: str, held: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "now").write_text(text)
    assert {job.name: job.hosts for job in read_running(tmp_path / "now")} == {
        name: tuple(expand(hosts)) for name, hosts in held.items()
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("JOBID NODES NODELIST\n101 4 n[0-2]\n", "now:2: expecting a host list of 4 nodes, got 3 in"),
        (HEADING + "  101  batch  a  ann  R  1:00  9 n[0-3,5,\n", r"now:2: host list 'n\[0-3,5,'"),
        ("  STEPID  NAME PARTITION USER TIME NODELIST\n 101.0 a b ann 1:00 n[0-3]\n", "got their steps"),
        ("JobId=101 JobName=a\n", "now:1: expecting the JobState of job 101, got none"),
    ],
)
def test_a_list_that_is_cut_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "now").write_text(text)
    with pytest.raises(TopompiError, match=said):
        read_running(tmp_path / "now")


SINFO = """PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
batch*       up   infinite      1  drain n1
batch*       up   infinite      1  down$ n2
batch*       up   infinite      1   resv n3
batch*       up   infinite      1  maint n4
batch*       up   infinite      1   mix- n5
batch*       up   infinite      2   idle n[6-7]
batch*       up   infinite      1  idle* n8
batch*       up   infinite      1  idle~ n9
batch*       up   infinite      1   plnd n10
batch*       up   infinite      1   futr n11
batch*       up   infinite      0    n/a
old        down   infinite      3   idle n[7,12-13]
"""
STATES = """NodeName=n1 Arch=x86_64
   State=IDLE+DRAIN ThreadsPerCore=1
   NextState=IDLE
NodeName=n2 State=IDLE Reason=State=DOWN NodeName=n9
NodeName=n3 State=MIXED+PLANNED
NodeName=n4 State=IDLE+NOT_RESPONDING
"""


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        (SINFO, "n[1-5,8,11-13]"),
        (SINFO.partition("\n")[2], "n[1-5,8,11-13]"),
        ("NODELIST STATE\nn[1-2] drained\nn3 idle\nn4 mixed+DRAIN\n", "n[1-2,4]"),
        ("n[1-2] drained\nn3 idle\nn4 idle*\n", "n[1-2,4]"),
        ("drained n[1-2]\nidle n3\n", "n[1-2]"),
        ("n1     1    batch* drng\nn3     1    batch* idle\n", "n1"),
        ("STATE|NODELIST\ndrained|n[1-2]\nidle|n3\n", "n[1-2]"),
        ("NODELIST,STATE\nn[1,4],drained\nn3,idle\n", "n[1,4]"),
        ("HOSTNAMES STATE\nn1 drained\nn3 idle\n", "n1"),
        (STATES, "n[1,3-4]"),
        ("---\nnodes:\n- name: n1\n  state: [IDLE, DRAIN]\n- name: n2\n  state:\n  - IDLE\n", "n1"),
        ("---\nsinfo:\n- node: {state: [DOWN]}\n  nodes: {nodes: [n3]}\n", "n3"),
        ("NODELIST STATE\nn3 idle\n", ""),
    ],
)
def test_nodes_that_take_no_job_are_found_in_any_format(text: str, closed: str, tmp_path: Path) -> None:
    (tmp_path / "states").write_text(text)
    assert set(read_closed(str(tmp_path / "states"))) == set(expand(closed))


def test_a_count_of_thousands_of_digits_and_a_row_without_state_are_survived(tmp_path: Path) -> None:
    (tmp_path / "now").write_text(f"JOBID NODES NODELIST\n101 {'9' * 5000} n0\n")
    assert [job.hosts for job in read_running(tmp_path / "now")] == [("n0",)]
    (tmp_path / "states").write_text("NODELIST NODES REASON STATE\nn0 1 x\n")
    assert read_closed(str(tmp_path / "states")) == ("n0",)
