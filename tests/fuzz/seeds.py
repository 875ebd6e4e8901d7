"""Sound inputs of every format, small and made here, and the real files where they are."""

import io
import json
import lzma
import os
import tarfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array, save_npz

from osu_like_bench.emulate.records import NetworkRecord
from tests.bench.test_compare import made
from tests.fuzz import colocated
from tests.fuzz.readers import FABRIC, job, network
from tests.ibreports import Model, default_report, ibroute, opensm_dump, pair, port_report
from tests.support import ROOT, SHARED
from tests.topology.test_clouds import written as written_hierarchy
from tests.topology.test_linklists import line_report, sections, selected_links
from tests.tuning.test_tune import measured, record
from topompi.mapping.machine import Machine
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import WRITERS, write_mapping
from topompi.mpi.selection.judging import Verdict
from topompi.mpi.selection.memory import VerdictFile
from topompi.mpi.selection.rules import Rules
from topompi.schedules import make
from topompi.schedules.exports.jsonio import to_json
from topompi.topology import load
from topompi.topology.sources import fabricjson
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

__all__ = ["FABRIC_REPORT", "real", "small"]

HEAD = 1 << 18  # bytes of a real file's content that are mutated; the whole of one is mutated as it is packed
FABRIC_REPORT = default_report(pair()).encode()

_SLURM = """SwitchName=s1 Nodes=n[1-4],m7 LinkSpeed=100
SwitchName=s2 Nodes=n[005-008]
SwitchName=top Switches=s[1-2]
"""
_BLOCKS = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n"
_YAML = """- topology: t
  cluster_default: true
  tree:
    switches:
      - switch: s1
        nodes: n[1-4]
      - switch: s2
        nodes: &few n[5-8]
      - switch: top
        children: s[1-2]
"""
_UNUSUAL = """Include f
SwitchName=s1 Nodes=n1,\\
n2
SwitchName=s2 Level=0 Nodes=(null) Switches=
RingName=r Nodes=n[1-2]
SwitchName = s3 Nodes = "N3.site"
"""
_YAML_AS_JSON = '[{"topology": "t", "tree": {"switches": [{"switch": "s", "nodes": "n[1-2]"}]}}]'
_DESCRIPTIONS = (
    "n1 (mlx5_0)",
    "hca-2 of n1",
    "N1.site ConnectX-6",
    "Storage Node 1 HCA-1",
    "n1;mlx5_0/1",
    "HCA #1",
    "",
)
_RULES = """{"format": "topompi rules", "version": 1, "rules": [
 {"methods": ["Alltoall"], "bytes": ["1K", null], "ranks": [2, 64], "algorithm": "colouring", "note": "n"},
 {"collective": "allreduce", "bytes": 8, "hosts": [2, 4], "topology": "0123456789abcdef", "algorithm": "ring"},
 {"algorithm": "native"}]}"""
_MARKET = "%%MatrixMarket matrix coordinate real symmetric\n% made\n3 3 3\n1 1 5\n2 1 1e3\n3 2 7.5\n"
_ARRAY = "%%MatrixMarket matrix array integer general\n2 2\n0\n5\n7\n0\n"


_SQUEUE = """             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
               101     batch   my job    user1  R       5:00      2 n[0-1]
               102     batch        b    user1 CG       5:00      1 n4
               103     batch        c    user1 PD       0:00      4 (Resources, Priority)
"""
_SQUEUE_YAML = """---
jobs:
- {job_id: 101, job_state: [COMPLETED, COMPLETING], nodes: n4, node_count: {set: true, number: 1}}
"""
_SACCT = """JobID|State|Submit|Start|End|Elapsed|TimelimitRaw|NNodes|SubmitLine|User
700_[3-10%4]|PENDING|2025-04-01T08:00:00|Unknown|Unknown|00:00:00|60|1|sbatch a|b|ann
701+0|COMPLETED|2025-04-01T08:00:00|2025-04-01T08:00:00|2025-04-01T08:10:00|00:10:00|60|1|x
y|bob
701+1|COMPLETED|2025-04-01T08:00:00|2025-04-01T08:00:00|2025-04-01T08:10:00|00:10:00|60|1.50K|x|bob
"""
_SACCT_JSON = """{"jobs": [{"job_id": 7, "state": {"current": ["COMPLETED"]}, "allocation_nodes": 3, "user": "ann",
 "time": {"submission": 10, "start": 20, "end": 30, "elapsed": 10, "limit": {"set": true, "number": 60}}}]}"""
_SQUEUE_MARKS = "JOBID|NAME|CPUS|NODES|ST|NODELIST(REASON)\n1|a|b|12|2|R|n[0-1]\n2|c|1|1|PD|(Priority)\n"
_SQUEUE_BARE = "\n".join(_SQUEUE.splitlines()[1:])
_SHOW_JOB = "JobId=7 JobName=a\n   JobState=RUNNING NumNodes=2 NumCPUs=8\n   NodeList=n[0-1]\n"
_SQUEUE_CPUS = """{"jobs": [{"job_id": 1, "job_state": ["RUNNING"], "nodes": "n1", "job_resources": {"nodes":
 {"list": "n1", "allocation": [{"name": "n1", "cpus": {"count": 2}}]}}}]}"""
_SACCT_COMMAS = """jobid,jobname,submit,elapsed,timelimit,nnodes,alloctres,nodelist,submitline
700_[3-5,12%4],"a,b",2025-04-01T08:00:00,00:00:00,1-02,1.2K,billing=4,node=3,n[1-2,4],sbatch
12+0,x,2025-04-01T08:00:00,1-02:03,Partition_+,1,,n1,a,b
12+1,y,2025-04-01T08:00:00,00:10:00,UNLIMITED,1,,n2,a
"""
_SWF = "; MaxNodes: 8\n1 0 1 70 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n1 0 1 70 4 -1 -1 4 90 -1 2 1 1 1 1 1 -1 -1\n"
_BATSIM = """{"nb_res": 4, "jobs": [{"id": "w!5", "subtime": 10.4, "walltime": 100, "res": 4, "profile": "1"}],
 "profiles": {"1": {"type": "DelayProfile", "delay": 20.2}}}"""
_SEQUENCE = _BATSIM.replace('"1": {', '"2": {').replace(
    '"profiles": {', '"profiles": {"1": {"type": "composed", "repeat": 3, "seq": ["2", "2"]}, '
)
_SINFO_BARE = "batch* up infinite 2 idle n[0-1]\nold down infinite 1 idle~ n2\nold up infinite 0 n/a\n"
_SINFO_YAML = "---\nnodes:\n- name: n1\n  state: [IDLE, DRAIN]\n- hostname: n2\n  state: idle\n  state_flags: []\n"
_SINFO = "NODELIST NODES STATE REASON\nn[0-1] 2 idle none\nn2 1 drained* bad fan\n"
_SCONTROL = "NodeName=n0 Arch=x86_64\n   State=IDLE+DRAIN Weight=1\n\nNodeName=n1 State=IDLE\n"
_SINFO_JSON = '{"sinfo": [{"node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"nodes": ["n1", "n2"]}}]}'


def _jobs() -> list[tuple[str, bytes]]:
    texts = {
        "running": (
            *(_SQUEUE, _SQUEUE_YAML, _SQUEUE_MARKS, _SQUEUE_BARE, _SHOW_JOB, _SQUEUE_CPUS),
            '{"jobs": [{"job_id": 1, "job_state": "COMPLETING", "nodes": "n[1-2]"}]}',
        ),
        "closed": (_SINFO, _SCONTROL, _SINFO_JSON, _SINFO_BARE, _SINFO_YAML),
        "workload": (_SACCT, _SACCT_JSON, _SACCT_COMMAS, _SWF, _BATSIM, _SEQUENCE),
    }
    return [(reader, text.encode()) for reader, of in texts.items() for text in of]


def small() -> list[tuple[str, bytes]]:
    """Reader and content of the inputs that are made here."""
    return [*_topologies(), *_graphs(), *_maps(), *_jobs(), *_others(), *colocated.seeds()]


def real(root: Path | None = None) -> list[tuple[str, bytes]]:
    """Reader and content of the real files: as they are, and unpacked as far as is mutated; none where they are not."""
    root = root or Path(os.environ.get("TOPOMPI_SHARED_DATA", SHARED))
    found: list[tuple[str, bytes]] = []
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        reader = "graph" if "commgraphs" in path.parts else "hosts" if "nodelists" in path.name else "topology"
        data = path.read_bytes()
        if len(data) <= HEAD:
            found.append((reader, data))
        if path.suffix == ".xz":
            found.append((reader, lzma.decompress(data)[:HEAD]))
        if path.suffix == ".txz":
            found.append((reader, lzma.decompress(data)))
    return found


def _topologies() -> list[tuple[str, bytes]]:
    fabric, ib = load(FABRIC), pair()
    written = fabricjson.write(fabric.fabric, fabric.routes)
    texts = [default_report(ib), port_report(ib), write_ibnetdiscover(fabric.fabric), written, _SLURM, _BLOCKS, _YAML]
    texts += [_UNUSUAL, _YAML_AS_JSON, default_report(_described())]
    texts += [
        "heading\n0: 1 2 3\n1: 1 2 -1\n2: 2 0 0\n",
        "NODE 0001 RACK 1 CELL 1 SWITCH 10\nNODE 0002 CELL 2 SWITCH 11\n",
    ]
    texts += [
        line_report(ib),
        sections(ib),
        selected_links(ib),
        *(
            written_hierarchy([(0, 0, 0), (0, 1, 1)], form)
            for form in ("aws", "oci", "gcp", "gcloud", "jgf", "labels", "kubectl")
        ),
    ]
    lfts = _lfts(ib)
    kept = fabricjson.write(*_with_tables(ib))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for name, text in (("fabric.txt", FABRIC_REPORT), ("lfts/1", lfts)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    found = [("topology", text.encode()) for text in (*texts, kept)]
    found += [("inside", (ROOT / f"tests/records/hwloc{version}.xml").read_bytes()) for version in (1, 2)]
    return [*found, ("topology", packed.getvalue()), ("tables", lfts), ("tables", opensm_dump(ib).encode())]


def _described() -> Model:
    return Model.on_leaves(_DESCRIPTIONS)


def _lfts(model: Model) -> bytes:
    return "\n".join(ibroute(model, switch) for switch in model.switches).encode()


def _with_tables(model: Model):
    from tests.ibreports import read_default, read_tables

    return read_default(default_report(model)).fabric, read_tables(model, [_lfts(model).decode()])


def _graphs() -> list[tuple[str, bytes]]:
    texts = [
        "# made\n0 1 5\n1 0 6e3\n2 1 7\n",
        "0,1,5,3\n1,0,6,1\n",
        "--- made ---\n0 , 1 = 5\n1 , 2 = 70\n--- end ---\nx\n",
    ]
    texts += [
        "3 2 001\n2 5\n1 5 3 7\n2 7\n",
        "% made\n3 2\n2\n1 3\n2\n",
        "2 1 111 1\n1 1 2 5\n1 1 1 5\n",
        _MARKET,
        _ARRAY,
        "Source;Target;Type;;Volume (KB)\n0;1;Undirected;;1,5\n1;2;Undirected;;7\n",
        "0 -> 1: 5\n",
        '"src","dst","count","bytes"\n"1","2","3","1,000"\n',
        ",r0,r1,r2\nr0,0,,5\nr1,1.5MB,0,2\nr2,7,8,0\n",
        "#a\n# GMT x\n#\n0 2\n1 {'weight': 5}\n2 {}\n1 0\n2 0\n",
        "0 1 2\n1 2\n2\n",
        'graph [ directed 1 node [ id 0 label "0" ] node [ id 1 label "1" ] edge [ source 0 target 1 weight 5 ] ]\n',
        '*vertices 2\n1 "0" 0.0 0.0\n2 "1"\n*arcs\n1 2 5.0\n',
        '<?xml version="1.0"?>\n<graphml><key id="d0" attr.name="weight"/><graph edgedefault="undirected">'
        '<node id="n0"/><node id="n1"/>'
        '<edge source="n0" target="n1"><data key="d0">5</data></edge></graph></graphml>\n',
        '{"directed": true, "nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1, "weight": 5}]}',
        '{"nodes": [{"id": 0}, {"id": 1}], "adjacency": [[{"id": 1, "weight": 5}], []]}',
        "[[0, 5], [7, 0]]",
        '[{"src": 0, "dst": 1, "bytes": 5}]',
    ]
    columns = {"source": [0, 1], "target": [1, 0], "volume": [5, 6], "messages": [1, 1]}
    texts.append(json.dumps({"format": "topompi graph", "version": 1, "size": 3, **columns}))
    prof = "# POINT TO POINT\nE\t0\t0\t108 bytes\t27 msgs sent\t0,0,0\nI\t0\t0\t1012 bytes\t30 msgs sent\n"
    arrays = {name: np.array(column) for name, column in columns.items()}
    matrix = np.array([[0, 5], [7, 0]])
    found = [("graph", text.encode()) for text in texts]
    packed = [{"size": np.array(4), **arrays}, {"matrix": matrix}]
    for one in packed:
        file = io.BytesIO()
        np.savez(file, **one)
        found.append(("graph", file.getvalue()))
    for form in (coo_array, csr_array):
        file = io.BytesIO()
        save_npz(file, form(matrix), compressed=False)
        found.append(("graph", file.getvalue()))
    return [*found, ("monitoring", prof.encode())]


def _maps() -> list[tuple[str, bytes]]:
    machine = Machine.tree(["h0", "h1", "h2"], [2, 2, 2], np.zeros((0, 3)), [4, 1])
    mapping = Mapping.identity(machine, 6)
    texts = [write_mapping(mapping, form).encode() for form in WRITERS]
    plain = [
        "rank 0=h1 slot=0\nrank 1=h0\n",
        "0-3,5,4\n",
        "h0:2\nh1\n",
        "h0\nh1\nh1\n",
        "--distribution=plane=2 --ntasks=4\n",
        "srun -m plane=2 -n 4\n",
        "rank 0=me@+n0 slot=p0:0-1;0:3\nRANK 1=h1 SLOT=1:*\n",
        "h0 slots=2 max-slots=3\nh1:1 binding=user:0\n",
        "h[0-1]*2,h2,\n",
    ]
    named = [("rank file alone", text) for text in texts]
    return [*named, *(("rank file", text) for text in texts), *(("rank file", text.encode()) for text in plain)]


def _others() -> list[tuple[str, bytes]]:
    memory = VerdictFile(job(), Path("/nowhere"))
    verdict = asdict(Verdict("ring", 1.5, 1e-5, "ring", 2))
    kept = {"format": "topompi decisions", "version": 1, "about": {}, "decisions": {"Allreduce 1024": verdict}}
    assert memory.read() == {}
    results = measured("Alltoall", 8, native=[2e-5] * 9, colouring=[1e-5] * 9)
    costs = {"levels": {"0": {"t_s": 1e-6, "t_w": 1e-9}, "1": {"t_s": 2e-6, "t_w": 2e-9}}}
    state = NetworkRecord("net", "abc123", "xgft:2;1", ("h0", "h1"), 0, "")
    texts = {
        "rules": _RULES,
        "schedule": to_json(make("alltoall", "shift", network())),
        "memory": json.dumps(kept),
        "model": json.dumps(costs),
        "tune record": record(results).to_json(),
        "bench record": made(1).to_json(),
        "hosts": "n[1-3,007],m1 # some\nrack[1,4-5]-u[42-46]*2,m2:3,m3(x2)\nexec_host=n1/0*4+n2/0\nn1 16 n2 16\n",
        "names": '# OpenSM\n0x0002c90300a1b2c3 "n 1"\n0xa2=n2 # rack\n',
        "emulated": json.dumps(asdict(state)),
    }
    assert Rules.parse(_RULES).rules
    return [(reader, text.encode()) for reader, text in texts.items()]
