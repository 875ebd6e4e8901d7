"""Files of other programs: whatever command is given one, it says in one line what the file is, in our words."""

import builtins
import io
import re
import sys

import pytest

from osu_like_bench.compare import main as compare
from topompi.cli import app
from topompi.inputs import foreign, in_words, kind_of
from topompi.inputs.kinds import READ
from topompi.machine.jobs.errors import JobsError, WorkloadError
from topompi.mapping.rankfiles import RankFileError
from topompi.mapping.readers import GraphFileError

SLURM = "SwitchName=s1 Nodes=n[01-04]\n"
# For each kind of file: a word by which its users know it, and the beginning of such a file.
FOREIGN = {
    "PBS accounting": ("PBS", "11/09/2026 23:59:51;E;64.srv;user=ann exec_host=n01/0*4+n02/0*4 end=1415599191\n"),
    "PBS accounting queued": ("PBS", "02/01/2027 00:00:00;Q;9.srv;queue=short\n02/01/2027 00:00:02;S;9.srv;user=ann\n"),
    "lsb.acct": ("LSF", '"JOB_FINISH" "10.1" 1389683139 404717 22025 33882739 8 "ann" "4*n01" 0 0\n'),
    "lsb.acct without a version": ("LSF", '"JOB_FINISH" 1590970000 101 4 1590969600 1590969610 "ann"\n'),
    "Grid Engine from second 1000": ("Grid Engine", "all.q:n01:g:u:job:101:sge:0:1000:1010:2000:0:0:990:1.0\n"),
    "lsb.events": ("LSF", '"JOB_START" "10.1" 1389642771 404717 4 0 0 10.3 2 "n01" "n02" "" "" 0 "" 0\n'),
    "Grid Engine": (
        "Grid Engine",
        "# Version: 8.1\nall.q:n01:grp:ann:run:77:sge:0:1415579756:1415589841:1415599191:0:0:9350:1.0:0.1:0:0:0:0\n",
    ),
    "Grid Engine failed": (
        "Grid Engine",
        "all.q:n01.site.org:g:u:job name:8:sge:-5:1415579756:0:0:100:137:0:0:0:0:0:0\n",
    ),
    "Grid Workloads": ("Grid Workloads Archive", "# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs\n0\t100\t5\t60\t4\n"),
    "Grid Workloads bare": ("Grid Workloads Archive", "JobID SubmitTime WaitTime RunTime NProcs\n0 100 5 60 4\n"),
    "bjobs": (
        "bjobs",
        "JOBID   USER    STAT  QUEUE  FROM_HOST  EXEC_HOST  JOB_NAME\n77 ann RUN normal login1 16*n01 a\n",
    ),
    "flux jobs": (
        "flux jobs",
        "       JOBID USER     NAME       ST NTASKS NNODES     TIME INFO\n   f4Kd ann sleep R 1 1 3.2s n01\n",
    ),
    "qstat": (
        "qstat",
        "Job id            Name             User   Time Use S Queue\n---- ----\n12.srv  a  ann 0 R batch\n",
    ),
    "qstat -f": ("qstat", "Job Id: 12.srv\n    Job_Name = a\n    exec_host = n01/0*16\n"),
    "qstat of Grid Engine": (
        "Grid Engine",
        "job-ID  prior   name       user         state submit/start at\n---\n 7 0.5 a ann r\n",
    ),
    "qstat -xml": ("qstat", "<?xml version='1.0'?>\n<job_info  xmlns:xsd='x'>\n  <queue_info>\n"),
    "condor_q": (
        "HTCondor",
        "-- Schedd: login1 : <10.0.0.1:9618?...\n ID OWNER SUBMITTED RUN_TIME ST\n 1.0 ann 11/9 0+00:01 R\n",
    ),
    "qstat JSON": (
        "PBS",
        '{"timestamp":1764000000,"pbs_version":"23.06","Jobs":{"12.pbs":{"job_state":"R","exec_host":"n01/0*16"}}}',
    ),
    "bjobs JSON": (
        "bjobs",
        '{"COMMAND":"bjobs","JOBS":1,"RECORDS":[{"JOBID":"77","STAT":"RUN","EXEC_HOST":"16*n01"}]}',
    ),
    "flux jobs JSON": (
        "Flux",
        '{"jobs":[{"id":1,"state":"RUN","name":"a","ntasks":32,"nnodes":2,"nodelist":"n[01,05]"}]}',
    ),
    "flux finished jobs": (
        "Flux",
        '{"jobs":[{"id":1,"t_submit":1764000000.0,"t_run":1764000010.0,"state":"INACTIVE"}]}',
    ),
    "flux events": (
        "Flux",
        '{"timestamp":1764000000.1,"name":"submit","context":{"userid":1}}\n{"timestamp":2.0}\n',
    ),
    "ibsim": ("ibsim", 'Switch\t8 "Switch1"\n[1]\t"Hca1"[1]\n\nHca\t1 "Hca1"\n[1]\t"Switch1"[1]\n'),
    "ibsim with comments": ("ibsim", '# Net 4x\n\nmodule x\nSwitch   4 "Sw 1"\n[2]  "Hca2"[1]  w=4x s=2.5\n'),
    "SimGrid": (
        "SimGrid",
        '<?xml version=\'1.0\'?>\n<!DOCTYPE platform SYSTEM "simgrid.dtd">\n<platform version="4.1">\n',
    ),
    "SimGrid without DTD": (
        "SimGrid",
        '<?xml version="1.0"?>\n<platform version="4"><host id="h" speed="1f"/></platform>',
    ),
    "NCCL's graphs": ("NCCL", '<graphs version="1">\n  <graph id="0" pattern="4" nchannels="2">\n'),
    "NCCL's system": ("NCCL", '<system version="1">\n  <cpu numaid="0">\n'),
    "opaxlattopology": (
        "opaxlattopology",
        "Rack Group,Rack,Name,Name-2,Type,Port,Rack Group,Rack\nrg,r1,h1,,FI,1,rg,r1\n",
    ),
    "Slingshot": (
        "Slingshot",
        '{"switches": [{"edgePorts": [{"connPort": "x1"}], "fabricPorts": [{"connPort": "x2"}]}]}',
    ),
    "containerlab YAML": ("containerlab", "name: lab\n\ntopology:\n  nodes:\n    leaf1:\n      kind: linux\n"),
    "containerlab JSON": (
        "containerlab",
        '{"name":"lab","topology":{"nodes":{"h1":{}},"links":[{"endpoints":["l1:e1","h1:e1"]}]}}',
    ),
    "tleaf": ("Scotch", "tleaf 2 2 100 2 10\n"),
    "torus of Scotch": ("Scotch", "torus2D 4 4\n"),
    ".grf": ("Scotch", "0\n4\t8\n0\t010\n2\t10\t1\t900\t2\n2\t10\t0\t900\t3\n2\t900\t0\t10\t3\n2\t900\t1\t10\t2\n"),
    "OMB": (
        "OSU",
        "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n4                       1.20\n",
    ),
    "OMB in whole numbers": ("OSU", "# OSU MPI Bandwidth Test\n# Size Bandwidth\n1 4\n2 8\n4 16\n"),
    "IPM": ("IPM", '<?xml version="1.0" encoding="iso-8859-1"?>\n<ipm_job_profile>\n<task ipm_version="2.0.2">\n'),
    "Paraver": ("Paraver", "#Paraver (28/11/2026 at 12:00):123_ns:2(4,4):1:4(1:1,1:1,1:2,1:2)\n"),
    "TAU": ("TAU", "12 templated_functions_MULTI_TIME\n# Name Calls\n"),
    "DOT": ("DOT", "digraph g {\n  0 -> 1 [weight=10];\n}\n"),
    "DOT with a quoted name": ("DOT", 'strict graph "a b" {\n  0 -- 1\n}\n'),
    "JSON lines": ("JSON lines", '{"src": 0, "dst": 1, "bytes": 5}\n{"src": 1, "dst": 0, "bytes": 5}\n'),
    "dict of dicts": ("objects by rank", '{"0": {"2": 900, "1": 10}, "1": {"3": 900}}'),
    ".mat": ("MATLAB", b"MATLAB 5.0 MAT-file, Platform: GLNXA64\x00\x01IM"),
    "perf.data": ("perf", b"PERFILE2\x68\x00\x00\x00"),
    "mpiexec's configuration": ("mpiexec", "# mine\n-n 2 -host n01 ./app\n-n 2 -host n02 ./app\n"),
    "Open MPI's appfile": ("mpiexec", "-np 2 --host n01 ./a\n-np 1 ./b\n"),
    "srun --multi-prog": ("srun --multi-prog", "# ranks\n0-1 ./app %t\n2,3 ./other\n"),
    "srun --multi-prog names": ("srun --multi-prog", "0,2-3 atmosphere\n* ocean\n"),
    "lscpu": ("lscpu", "Architecture:            x86_64\nCPU op-mode(s):          32-bit, 64-bit\n"),
    "HTML": ("HTML", "<!DOCTYPE html>\n<html><title>jobs</title>"),
    "UTF-16": ("UTF-16", "0 1 5\n".encode("utf-16")),
}
# Words of each command that reads a file; FILE stands for the foreign one, TOPO for a sound topology.
COMMANDS = {
    "map": "map FILE --topology TOPO",
    "map A B": "map GRAPH given FILE --topology TOPO",
    "map on a foreign topology": "map GRAPH --topology FILE",
    "--hosts": "map GRAPH --topology TOPO --hosts FILE",
    "slurm place": "slurm place GRAPH --topology FILE --hosts n[01-02]",
    "topology show": "topology show FILE",
    "topology inside": "topology inside FILE",
    "topology draw": "topology draw TOPO -o OUT.svg --loads FILE",
    "topology draw --map": "topology draw TOPO -o OUT.svg --map FILE",
    "export launch-kit": "export launch-kit FILE --topology TOPO -o OUT",
    "jobs check": "jobs check FILE --topology TOPO",
    "jobs simulate": "jobs simulate FILE --topology TOPO",
    "jobs allocate": "jobs allocate 2 --topology TOPO --running FILE",
    "jobs characterise": "jobs characterise A=FILE --topology TOPO",
    "jobs worth": "jobs worth FILE --speedups FILE --nodes 4 --cores 8",
    "jobs price": "jobs price FILE FILE --rate 1",
    "colocate pair": "colocate pair FILE",
    "colocate profile": "colocate profile FILE --name a",
    "colocate predict": "colocate predict FILE",
    "profile show": "profile show FILE --topology TOPO",
    "schedule": "schedule bcast --topology TOPO --model FILE",
    "jobs simulate --speedups": "jobs simulate LOG --topology TOPO --speedups FILE",
    "topology export --rename": "topology export TOPO -o OUT.conf --rename FILE",
    "topology show --lfts": "topology show TOPO --lfts FILE",
    "topology show --names": "topology show TOPO --names FILE",
    "export ompi-rules": "export ompi-rules FILE -o OUT",
    "jobs replay": "jobs replay A=FILE --topology TOPO",
    "jobs lanes": "jobs lanes A=FILE --topology TOPO",
    "slurm place --hosts": "slurm place GRAPH --topology TOPO --hosts FILE",
    "why": "why bcast 1K --topology TOPO --rules FILE",
}
PYTHONS = re.compile(
    "|".join(name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException))
)


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Returns the exit code and the words of a command line, run within this process."""
    (tmp_path / "topo.conf").write_text(SLURM)
    (tmp_path / "graph.txt").write_text("0 1 900\n1 0 900\n")
    (tmp_path / "log.swf").write_text("1 0 0 60 2 -1 -1 2 60 -1 1 1 1 1 1 1 -1 -1\n")
    places = {"TOPO": "topo.conf", "GRAPH": "graph.txt", "LOG": "log.swf", "OUT": "out", "FILE": "file"}

    def run(words: str, content: bytes) -> tuple[int, str]:
        (tmp_path / "file").write_bytes(content)
        for name, path in places.items():
            words = re.sub(rf"\b{name}\b", str(tmp_path / path), words)
        out = io.StringIO()
        monkeypatch.setattr(sys, "argv", ["topompi", *words.split()])
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", out)
        code = 0
        try:
            app.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, out.getvalue()

    return run


def head_of(kind: str) -> bytes:
    content = FOREIGN[kind][1]
    return content if isinstance(content, bytes) else content.encode()


@pytest.mark.parametrize("kind", FOREIGN)
def test_every_kind_is_known_by_a_word_that_its_users_know(tmp_path, kind):
    word, content = FOREIGN[kind][0], head_of(kind)
    assert word in kind_of(content)
    (tmp_path / "f").write_bytes(content)
    named = in_words(JobsError(f"{tmp_path}/f: line 1: expecting 18 fields, got KeyError: 'jobs'"))
    assert named == f"{tmp_path}/f: line 1: expecting 18 fields, got {foreign(content, ())}"


def test_an_error_keeps_its_words_if_its_reader_knows_the_format_or_nothing_is_foreign(tmp_path):
    for number, (content, error) in enumerate(
        [
            ("; Version: 2.2\n1 2 3\n", WorkloadError),
            ("<graphml>\n", GraphFileError),
            ("0 1 x\n", GraphFileError),
            ("rank 0=n01 slot=x\n", RankFileError),
        ]
    ):
        path = tmp_path / str(number)
        path.write_text(content)
        assert in_words(error(f"{path}:2: expecting a number, got 'x'")) == f"{path}:2: expecting a number, got 'x'"
    assert in_words(JobsError(f"{tmp_path}/none: no such file")) == f"{tmp_path}/none: no such file"


# Each command gets some of the kinds, and all commands together get every kind.
STEP = 9


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_every_command_names_the_files_of_other_programs_in_one_line(said, number):
    wrong = []
    command, kinds = list(COMMANDS.values())[number], list(FOREIGN)[number % STEP :: STEP]
    for kind in kinds:
        code, words = said(command, head_of(kind))
        line = words.strip().rpartition("\n")[2]
        if code != 1 or FOREIGN[kind][0] not in line or PYTHONS.search(words) or "Traceback" in words:
            wrong.append((kind, code, line[:300]))
    assert not wrong, command


# What each command expects of FILE, by which the end of its refusal is chosen; nothing if the refusal lists formats.
WANTED = {
    "jobs simulate": "a workload",
    "jobs check": "running jobs",
    "jobs allocate": "running jobs",
    "jobs allocate --closed": "states of nodes",
    "--hosts": "a list of hosts",
    "topology show": "",
    "map": "",
    "jobs replay": "",
}
OF_JOBS = ("PBS accounting", "lsb.acct", "qstat", "bjobs", "condor_q", "HTML", "ibsim", "TAU")


@pytest.mark.parametrize("command", WANTED)
def test_the_command_and_not_the_file_chooses_the_way_out(said, command):
    for kind in OF_JOBS:
        words = COMMANDS.get(command, "jobs allocate 2 --topology TOPO --closed FILE")
        _, told = said(words, head_of(kind))
        assert FOREIGN[kind][0] in told
        assert [wanted for wanted, read in READ.items() if read in told] == list(filter(None, [WANTED[command]])), told
        assert ("start ibsim" in told) == (kind == "ibsim" and command == "topology show")
        assert ("'src dst bytes'" in told) == (kind == "TAU" and command == "map"), told


def test_a_log_that_is_taken_as_swf_names_the_reason_and_the_five_fields(said):
    for content in ("job,submit,run,nodes\n1,0,600,6\n", "1 2 3\n"):
        code, told = said("jobs simulate FILE --topology TOPO", content.encode())
        assert code == 1
        assert (
            f"line 1: expecting SWF's 18 fields, or sacct's names with JobID, got {content.split(chr(10))[0]!r}" in told
        )
        assert "JobID|Submit|Start|End|NNodes" in told


def test_records_of_others_are_named_where_records_are_compared(tmp_path, capsys):
    (tmp_path / "f").write_bytes(head_of("OMB"))
    assert compare([str(tmp_path / "f"), str(tmp_path / "f")]) == 1
    assert "output of OSU's own micro-benchmarks" in capsys.readouterr().err
