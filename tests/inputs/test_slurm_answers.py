"""Slurm's JSON, YAML and tables of several clusters: failures are errors, and no two machines are read as one."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, refusal, shared_data, text_of
from topompi.errors import SourceError
from topompi.inputs.programs import run_program
from topompi.inputs.slurm import commands
from topompi.inputs.slurm.answers import number_of
from topompi.inputs.slurm.environment import BY_MPIRUN, worlds_of_one
from topompi.inputs.slurm.nodes import node_states
from topompi.inputs.slurm.running import jobs_of
from topompi.machine.jobs import read_workload
from topompi.visible import last_first

Reader = Callable[..., object]


def running(text: str, cluster: str | None = None) -> list[tuple[str, tuple[str, ...]]]:
    return [(job.name, job.hosts) for job in jobs_of(text_of(text), cluster=cluster)]


def closed(text: str, cluster: str | None = None) -> tuple[str, ...]:
    return node_states([text_of(text)], cluster=cluster)[1]


def logged(text: str, cluster: str | None = None) -> list[int]:
    return read_workload(text_of(text), cluster=cluster).number.tolist()


def unset(number: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": number}


def queued(number: int, hosts: str, **more: object) -> dict[str, object]:
    return {"job_id": number, "job_state": ["RUNNING"], "nodes": hosts, "node_count": unset(1), **more}


def ran(number: int, **more: object) -> dict[str, object]:
    times = {"submission": 1000, "start": 1010, "end": 1610, "elapsed": 600, "limit": unset(60)}
    return {"job_id": number, "time": times, "state": {"current": ["COMPLETED"]}, "allocation_nodes": 3, **more}


OBJECTS: dict[str, dict[str, object]] = {
    "squeue": {"jobs": [queued(7, "n1")]},
    "sacct": {"jobs": [ran(7)]},
    "sinfo": {"sinfo": [{"node": {"state": ["DOWN"]}, "nodes": {"nodes": ["n3"]}}]},
    "scontrol show nodes": {"nodes": [{"name": "n3", "state": ["DOWN"]}]},
    "scontrol show partitions": {"partitions": [{"name": "all"}]},
}
READERS: list[tuple[Reader, str]] = [(running, "jobs"), (closed, "nodes"), (closed, "sinfo"), (logged, "jobs")]
FORMS: list[Callable[[object], str]] = [json.dumps, lambda value: yaml.safe_dump(value, sort_keys=False)]
FAILURE = {"description": "Unable to contact slurm controller", "error_number": 1800, "error": "E", "source": "s()"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("read", "field"), READERS)
@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([FAILURE], "Unable to contact slurm controller (E, s(), error 1800)"),
        ([{"error": "Invalid user", "errno": 2010}], "Invalid user (error 2010)"),
        (["first", "second", "first"], "first; second"),
        ({"description": "Zero Bytes were transmitted"}, "Zero Bytes were transmitted"),
        ([{"number": 3}], "an error without words"),
    ],
)
def test_an_answer_that_says_that_it_failed_is_refused_in_slurms_words(
    form: Callable[[object], str], read: Reader, field: str, errors: object, words: str
) -> None:
    told = refusal(read, form({field: [], "meta": {}, "errors": errors}))
    assert told.endswith(f"got Slurm's error: {words}")
    assert told == refusal(read, form({"errors": errors, "warnings": []}))  # the list may be missing, too


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("read", "field"), READERS)
def test_a_warning_counts_only_if_nothing_came_and_an_empty_answer_is_empty(
    form: Callable[[object], str], read: Reader, field: str
) -> None:
    for nothing in ([], None):
        assert not read(form({field: nothing, "meta": {}, "errors": [], "warnings": None}))
    told = refusal(read, form({field: [], "errors": [], "warnings": [{"description": "Zero jobs", "source": "q"}]}))
    assert told.endswith("got nothing and Slurm's warning: Zero jobs (q)")
    whole = OBJECTS[{"running": "squeue", "logged": "sacct"}.get(read.__name__, "sinfo")]
    assert read(form({**whole, "errors": [], "warnings": [{"description": "Deprecated"}]}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    ("read", "own"), [(running, "squeue"), (logged, "sacct"), (closed, "sinfo"), (closed, "scontrol show nodes")]
)
def test_the_output_of_another_command_is_named_beside_what_is_wanted(
    form: Callable[[object], str], name: str, read: Reader, own: str
) -> None:
    content = OBJECTS[name]
    if name == own or {name, own} == {"sinfo", "scontrol show nodes"}:
        assert read(form(content))
        return
    told = refusal(read, form(content))
    assert "f: expecting " in told
    assert told.endswith((f"got the output of {name}", f"got {name}"))
    if not name.startswith("scontrol"):  # an empty object is known by its command alone
        empty = {field: [] for field in content}
        assert refusal(read, form({**empty, "meta": {"command": [f"/usr/bin/{name}", "--json"]}})) == told


@pytest.mark.parametrize("read", [running, closed, logged])
@pytest.mark.parametrize(
    "content",
    [
        {"jobs": {"7": {}}, "nodes": {"n": {}}},
        {"jobs": [7], "nodes": ["n1"]},
        {"jobs": [{}], "nodes": [{}]},
        {"jobs": [{"job_id": 1, "job_state": 5, "time": 5, "state": 5}], "nodes": [{"name": ["n"], "node": 3}]},
        {"jobs": [{"job_id": 1, "job_state": ["RUNNING"], "nodes": "n1", "node_count": []}], "sinfo": [{"node": {}}]},
        {"a": 1},
        {},
    ],
)
def test_no_refusal_has_the_name_of_an_exception(read: Reader, content: object) -> None:
    told = refusal(read, json.dumps(content))
    assert "expecting" in told
    assert not re.search("[A-Z][a-z]+Error|dict|NoneType", told)


@given(st.integers(0, 2**40), st.booleans(), st.booleans(), st.sampled_from([bool, str]))
def test_a_number_is_the_same_alone_in_an_object_and_as_text(number: int, set_: bool, infinite: bool, kind) -> None:
    value = {"set": kind(set_), "infinite": kind(infinite), "number": (kind is str and str(number)) or number}
    if kind is str:
        value |= {"set": str(set_).lower(), "infinite": str(infinite).lower()}
    assert number_of(value) == (str(number) if set_ and not infinite else "")
    assert number_of(number) == number_of(str(number)) == str(number)
    assert number_of(None) == ""


HEAD = "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
ROW = "{} all wrap ann R 1:00 1 {}\n"
SACCT = "Cluster|JobID|Submit|Elapsed|NNodes\n"
TIME = "2026-11-01T00:00:00|01:00:00|1"


def joined(*answers: object, heading: bool = True) -> str:
    parts = [json.dumps(answer, indent=1) for answer in answers]
    return "\n".join(f"CLUSTER: {name}\n{part}\n" if heading else part for name, part in zip("ab", parts, strict=True))


SEVERAL: list[tuple[Reader, str, object]] = [
    (running, f"CLUSTER: a\n{HEAD}{ROW.format(1, 'n1')}\nCLUSTER: b\n{HEAD}{ROW.format(1, 'n2')}", [("1", ("n2",))]),
    (running, f"CLUSTER: a\n{HEAD}{ROW.format(1, 'n1')}\nCLUSTER: b\n{HEAD}", []),
    (running, f"a {ROW.format(1, 'n1')}b {ROW.format(1, 'n2')}", [("1", ("n2",))]),
    (running, "JOBID|CLUSTER|NODELIST|ST\n1|a|n1|R\n1|b|n2|R\n", [("1", ("n2",))]),
    (running, joined({"jobs": [queued(1, "n1")]}, {"jobs": [queued(1, "n2")]}), [("1", ("n2",))]),
    (running, joined({"jobs": [queued(1, "n1")]}, {"jobs": []}), []),
    (
        running,
        joined(*({"jobs": [], "meta": {"slurm": {"cluster": name}}} for name in "ab"), heading=False),
        [],
    ),
    (
        running,
        "".join(
            f"%YAML 1.1\n---\n{yaml.safe_dump({'jobs': [queued(1, f'n{at}', cluster=name)]})}...\n\n"
            for at, name in ((1, "a"), (2, "b"))
        ),
        [("1", ("n2",))],
    ),
    (running, json.dumps({"jobs": [queued(1, "n1", cluster="a"), queued(1, "n2", cluster="b")]}), [("1", ("n2",))]),
    (closed, "CLUSTER: a\nNODELIST STATE\nn1 down\n\nCLUSTER: b\nNODELIST STATE\nn2 down\n", ("n2",)),
    (closed, "CLUSTER NODELIST STATE\na n1 down\nb n2 down\n", ("n2",)),
    (closed, joined({"nodes": [{"name": "n1", "state": ["DOWN"]}]}, {"nodes": []}), ()),
    (closed, joined({"sinfo": []}, OBJECTS["sinfo"]), ("n3",)),
    (logged, f"{SACCT}a|7|{TIME}\nb|8|{TIME}\n", [8]),
    (logged, f"{SACCT}a|7|{TIME}\nb|7|{TIME}\n".replace("|", ","), [7]),
    (logged, json.dumps({"jobs": [ran(7, cluster="a"), ran(7, cluster="b")]}), [7]),
    (logged, yaml.safe_dump({"jobs": [ran(7, cluster="a"), ran(8, cluster="b")]}), [8]),
]


@pytest.mark.parametrize(("read", "text", "of_b"), SEVERAL)
def test_an_output_of_several_clusters_is_refused_until_one_is_named(read: Reader, text: str, of_b: object) -> None:
    assert refusal(read, text) == "f: expecting one cluster, got a and b: --cluster-name takes one"
    assert read(text, "b") == of_b
    assert refusal(read, text, "c") == "f: expecting the cluster c (--cluster-name), got a and b"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (running, f"CLUSTER: b\n{HEAD}{ROW.format(1, 'n2')}"),
        (running, f"CLUSTER: b\n{json.dumps(OBJECTS['squeue'])}\n"),
        (running, f"CLUSTER: b\n---\n{yaml.safe_dump(OBJECTS['squeue'])}"),
        (closed, "CLUSTER: b\nNODELIST STATE\nn2 down\n"),
        (logged, f"{SACCT}b|7|{TIME}\n"),
    ],
)
def test_an_output_of_one_cluster_needs_no_name_and_may_have_one(read: Reader, text: str) -> None:
    assert read(text) == read(text, "b") != []


def test_a_name_that_the_output_cannot_tell_is_refused() -> None:
    for read, text in ((running, HEAD + ROW.format(1, "n1")), (running, "a n1\n"), (closed, "n1\n")):
        assert "expecting the cluster b (--cluster-name), got no name of a cluster" in refusal(read, text, "b")
    assert "expecting a log of sacct beside --cluster-name" in refusal(logged, "1 0 0 9 1 -1 -1 1\n", "b")


def test_a_damaged_answer_is_refused_by_the_line_of_the_whole_file() -> None:
    text = joined(OBJECTS["squeue"], OBJECTS["squeue"])
    assert refusal(running, text.replace('"job_id"', '"job_id', 1)).startswith("f:5: expecting JSON")
    last = text.rindex('"job_id"')
    line = text.count("\n", 0, last) + 1
    assert refusal(running, text[:last] + text[last + 1 :]).startswith(f"f:{line}: expecting JSON")


CASES = [
    (("jobs", "check", "D01-json-errors/err.json"), "Slurm's error: Unable to contact slurm controller"),
    (("jobs", "check", "D01-json-errors/err.yaml"), "Slurm's error: Unable to contact slurm controller"),
    (("jobs", "allocate", 3, "--closed", "D01-json-errors/nodes_err.json"), "(connect failure)"),
    (("jobs", "allocate", 3, "--closed", "D01-json-errors/sinfo_err.json"), "(connect failure)"),
    (("jobs", "simulate", "D01-json-errors/sacct_err.json"), "(connect failure)"),
    (("jobs", "simulate", "D03-sacct-clusters/sacctL.txt"), "got alpha and beta: --cluster-name takes one"),
    (("jobs", "simulate", "D03-sacct-clusters/sacct2.json"), "got alpha and beta: --cluster-name takes one"),
    (("jobs", "check", "D07-squeue-clusters/squeue_M.txt"), "got alpha and beta: --cluster-name takes one"),
    (("jobs", "check", "D06-other-queues/sacct_run.json"), "expecting .*, got finished jobs of Slurm (sacct --json)"),
]


@pytest.mark.parametrize(("words", "said"), CASES)
def test_the_cases_are_refused_with_one_line(words: tuple[object, ...], said: str) -> None:
    done = _case(*words)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stdout == ""
    assert all(part in done.stderr for part in said.split(".*"))


def test_the_named_cluster_of_a_case_is_read_alone() -> None:
    for log in ("sacctL.txt", "sacct2.json"):
        done = _case("jobs", "simulate", f"D03-sacct-clusters/{log}", "--json", "--cluster-name", "beta")
        told = json.loads(done.stdout)
        assert (told["job"], told["summary"]["mean_wait"], told["summary"]["makespan"]) == ([100], 0, 3600)
    rows = _case("jobs", "check", "D07-squeue-clusters/squeue_M.txt", "--json", "--cluster-name", "alpha").stdout
    assert [(row["job"], row["hosts"]) for row in json.loads(rows)["rows"]] == [("101", 3)]


def _case(*words: object):
    folder = shared_data("cases")
    given = [folder / word if isinstance(word, str) and word.startswith("D0") else word for word in words]
    return command_line(*given, "--topology", folder / "D01-json-errors/topo.conf")


def test_the_words_of_a_program_are_whole_with_the_last_line_first() -> None:
    long = "x" * 5000
    assert last_first(f"one\n\n two  words\none\n{long}\n".encode()) == f"{long} (before it: two words; one)"
    assert (last_first(b" \n"), last_first(b"a\na\n")) == ("nothing", "a")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo why >&2; echo squeue: error: no controller >&2; exit 3", "exit code 3: squeue: error: no controller ("),
        ("echo slurm_load_topo error: no controller >&2", "got: slurm_load_topo error: no controller"),
        ("sleep 9", "an end within 0.5 s, got none"),
    ],
)
def test_a_command_that_fails_is_an_error_also_with_exit_code_0(script: str, said: str) -> None:
    seconds = 0.5 if script.startswith("sleep") else 30
    assert said in refusal(lambda: commands.printed(["sh", "-c", script], "jobs", seconds), error=SourceError)


def test_a_command_that_is_missing_or_would_ask_several_clusters_is_refused(monkeypatch) -> None:
    assert "got no no-such-tool on this machine" in refusal(run_program, ["/no-such-tool"], "jobs", 1)
    for clusters in ("a,b", "all"):
        monkeypatch.setenv("SLURM_CLUSTERS", clusters)
        assert "squeue: expecting one cluster" in refusal(commands.printed, commands.SHOW_JOBS, "jobs")
        assert commands.asked([sys.executable, "-c", "print(1)", "--clusters=a"], "jobs") == b"1\n"


@pytest.mark.parametrize("words", [("jobs", "check", "--slurm"), ("jobs", "allocate", 2, "--slurm")])
def test_commands_that_ask_slurm_need_no_topology_and_end_with_its_error(words, tmp_path: Path) -> None:
    tree = (
        "SwitchName=s0 Level=0 Nodes=n[0-3]\\nSwitchName=s1 Level=0 Nodes=n[4-7]\\nSwitchName=t Level=1 Switches=s[0-1]"
    )
    tools = {
        "squeue": "echo 'JOBID|STATE|CPUS|NODELIST\n7|RUNNING|8|n[3-4]'",
        "sinfo": "echo 'n0 idle\nn1 idle\nn2 down\nn5 idle'",
        "scontrol": f"printf '{tree}\\n'",
    }
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    done = command_line(*words, PATH=f"{tmp_path}:/bin:/usr/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("1 job, 0 pairs" if words[1] == "check" else "n[0-1]") in done.stdout
    for name in tools if words[1] == "allocate" else ("squeue", "scontrol"):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text("#!/bin/sh\necho why >&2\necho error: no controller >&2\nexit 1\n")
        done = command_line(*words, PATH=f"{tmp_path}:/bin:/usr/bin")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"topompi: {name}: expecting " in done.stderr
        assert done.stderr.endswith("got exit code 1: error: no controller (before it: why)\n")
        (tmp_path / name).write_text(whole)
    assert "expecting --topology, or --slurm, got neither" in command_line("jobs", "allocate", 2).stderr


# --- Worlds of one: tasks of srun that should be one MPI job, told from programs that are rightly alone.


# As Slurm 22.05 sets them for the first of four tasks of srun --mpi=none.
TASK = {
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NODELIST": "h[0000-0003]",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_TASKS_PER_NODE": "1(x4)",
}
PMI2 = {"SLURM_MPI_TYPE": "pmi2", "PMI_FD": "11", "PMI_JOBID": "4.2", "PMI_RANK": "0", "PMI_SIZE": "4"}


@pytest.mark.parametrize("interface", [{}, PMI2, {"SLURM_MPI_TYPE": "pmix", "PMIX_RANK": "0"}])
def test_the_first_of_several_tasks_without_partners_says_how_to_start_them(interface):
    said = worlds_of_one({**TASK, **interface}, 1)
    assert said.startswith("srun started 4 tasks, and each is an MPI program of one rank")
    assert "srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH), or with mpirun" in said


def without(*names):
    return {name: value for name, value in TASK.items() if name not in names}


@pytest.mark.parametrize(
    ("environment", "size"),
    [
        pytest.param(TASK, 4, id="the tasks are one world"),
        pytest.param({**TASK, "SLURM_PROCID": "1"}, 1, id="another task says it"),
        pytest.param({**TASK, "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}, 1, id="srun -n1"),
        pytest.param(without("SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"), 1, id="shell of salloc"),
        pytest.param(without("SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"), 1, id="batch script"),
        pytest.param(
            {**TASK, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}, 1, id="interactive step of salloc"
        ),
        pytest.param({**TASK, "OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"}, 1, id="mpirun -n1, daemons by srun"),
        pytest.param({**TASK, "MPI_LOCALNRANKS": "1", "PMI_SIZE": "1"}, 1, id="mpiexec -n1, proxies by srun"),
        pytest.param(without("SLURM_STEP_ID"), 1, id="variables of a step, but no step"),
        pytest.param({}, 1, id="no Slurm"),
    ],
)
def test_programs_that_are_rightly_alone_are_not_warned(environment, size):
    assert worlds_of_one(environment, size) == ""


words = st.sampled_from(["", "0", "1", "2", "4", "x", "-1", "1(x4)", "9" * 12])
changes = st.sampled_from(["SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", *BY_MPIRUN])


@given(changed=st.dictionaries(changes, words, max_size=3), size=st.integers(1, 2))
def test_a_warning_needs_a_step_of_several_tasks_a_world_of_one_and_no_mpirun(changed, size):
    environment = {**TASK, **changed}
    several = environment.get("SLURM_STEP_NUM_TASKS") in ("2", "4") and bool(environment.get("SLURM_STEP_ID"))
    alone = size == 1 and environment.get("SLURM_PROCID") == "0" and not set(BY_MPIRUN) & set(environment)
    assert bool(worlds_of_one(environment, size)) == (several and alone)
