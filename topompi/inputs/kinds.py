"""Recognition, by their first bytes, of files that a command cannot read, so that an error can name their kind.

This is the one place for it: readers name the kind by `kind_of` if none of them reads a file, and the command line does
it by `foreign` if a reader fails. A name ends with a way out if there is one for what the command expects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

__all__ = ["READ", "foreign", "kind_of"]

# For what a command expects: the files that it reads, which is the way out for names that have none of their own.
READ = {
    "a workload": "SWF, sacct's lines and JSON, and Batsim's JSON are read; convert: first line "
    "JobID|Submit|Start|End|NNodes, then a line a job, times as epoch seconds or ISO (docs/jobs.md#other-logs)",
    "running jobs": "lines JOB HOSTS, CSV job,hosts, and squeue's output are read (docs/jobs.md#other-logs)",
    "states of nodes": "host lists, and the output of sinfo and scontrol show nodes are read",
    "a list of hosts": "lines with host lists of Slurm, PBS or LSF are read",
}

# Names, each alone, with a way out for every command (NAME: WAY), or with one for commands that expect something with
# a certain word (NAME|WORD|WAY).
_MAGIC = {
    b"\xfd7zXZ\x00": "an xz archive within another archive",
    b"\x1f\x8b": "a gzip archive within another archive",
    b"BZh": "a bzip2 archive: unpack it first",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive: unpack it first",
    b"\x04\x22\x4d\x18": "an LZ4 archive: unpack it first",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive: unpack it first",
    b"PK\x03\x04": "a zip archive (or .npz)",
    b"PK\x05\x06": "an empty zip archive",
    b"\x1f\x9d": "a compress (.Z) archive: unpack it first",
    b"\x93NUMPY": "one NumPy array (.npy), which is read as a graph's matrix",
    b"\x89HDF\r\n": "HDF5",
    b"MATLAB 5.0 MAT-file": "a MATLAB file (.mat)|graph|write its matrix with numpy.save",
    b"%PDF": "PDF",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x7fELF": "a program (ELF)",
    b"SQLite format 3": "an SQLite database",
    b"PAR1": "Parquet",
    b"ARROW1": "an Arrow file (Feather)",
    b"PERFILE2": "a recording of perf (perf.data)|profiles|perf stat's report is read",
    b"OTF2": "a file of an OTF2 trace|trace|its anchor file .otf2 is read",
    b"\x80\x04\x95": "a Python pickle, which is never read",
    b"\xff\xfe": "text in UTF-16: write it in UTF-8",
    b"\xfe\xff": "text in UTF-16: write it in UTF-8",
}
_READ = {b"\x93NUMPY", b"PK\x03\x04", b"SQLite format 3", b"\x89HDF\r\n"}  # some readers read these
_HOSTS = "hosts of a job of {}, which have no switches|topology|give them with --hosts"
_FIRST = r"\A(?:#[^\n]{0,200}\n){0,20}[ \t]*"  # the first line that is no comment
_MATRIX = "|graph|write its bytes as lines 'src dst bytes'"
_OPAREPORT = "a report of Omni-Path (opareport)|topology|opaextractsellinks is read"
# Patterns at the start of a line, each with the name by which users know the format. A third word is the error class of
# the readers that read the format: in their errors it is not foreign. ANY stands for readers of several classes.
ANY = "*"
_TEXT: tuple[tuple[str, ...], ...] = (
    (r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];", "an accounting log of PBS"),
    (r'"JOB_[A-Z_]+" "?\d', "an accounting or event log of LSF (lsb.acct)"),
    (r"([^:\n]{0,200}:){5}\d+:[^:\n]{0,200}:-?\d+:([1-9]\d{0,18}:|0:){3}", "an accounting log of Grid Engine"),
    (r"(?:#[ \t]*)?JobID,?\s+SubmitTime,?\s+WaitTime", "a log of the Grid Workloads Archive"),
    (r"JOBID\s+USER\s+STAT\s+QUEUE", "a report of LSF (bjobs)"),
    (r"JOBID\s+(USER|QUEUE)\s+.*\bNTASKS\b", "a report of Flux (flux jobs)"),
    (r"job-ID\s+prior\s+name\s+user", "a report of Grid Engine (qstat)"),
    (r"Job [Ii][dD]:? .*\b(Name|User)\b|Job Id: \S+\s*$|<job_info\b", "a report of qstat"),
    (r"-- Schedd: |ID\s+OWNER\s+SUBMITTED\s+RUN_TIME", "a report of HTCondor (condor_q)"),
    (
        r"cpu_index_using\s*:|overlapping_rs\s*:|rank\s*:\s*\{?\d[\d,\s-]{0,99}\}?\s*:\s*\{",
        "an explicit resource file (ERF) of jsrun, which maps ranks: topompi map PROFILE A B reads it",
        "RankFileError",
    ),
    (
        r"rank\s+\d+\s*=\s*\S+",
        "a rank file of Open MPI: topompi map PROFILE A B reads it",
        "RankFileError",
        "MapCommandError",
    ),
    (
        _FIRST + r"-(n|np)\s+\d+\s+(?!.*plane=)\S",
        "a configuration file of mpiexec (MPMD)|hosts|write its hosts as lines HOST:COUNT",
    ),
    (
        _FIRST
        + r"((\*|\d{1,6}(,(?!\d{3}\b)\d{1,6}|-\d{1,6}(?![\d-]))[\d,-]{0,200})[ \t]+[A-Za-z./]\S*"
        + r"|\d{1,6}[\d,-]{0,200}[ \t]+\.{0,2}/\S+)",
        "a configuration of srun --multi-prog, which names no hosts: Slurm's host file has one per rank",
    ),
    (
        r'(Switch|Hca)[ \t]+\d+[ \t]+"(?![SHR]-[0-9a-f]{16}")',
        "a network of ibsim|topology|start ibsim with it, and read ibnetdiscover's report",
    ),
    (
        r"<!DOCTYPE platform\b|<platform\b",
        "a platform of SimGrid|topology|give its cluster in words, such as XGFT(2; 2,2; 1,2) or dragonfly:...",
    ),
    (
        r"<graphs version=",
        "channels that NCCL chose (graphs in XML), which have no switches: see topompi topology inside",
    ),
    (
        r'"?Rack Group"?,',
        "planned links of Omni-Path (opaxlattopology)|topology|those that opaextractsellinks finds are read",
    ),
    (
        r"topology:[ \t]*\n[ \t]+(nodes|kinds|defaults|links|groups):",
        "a topology of containerlab (YAML)|topology|write its switches as SwitchName lines of Slurm",
    ),
    (
        r"(tleaf|cmplt|hcub|mesh[23]?D|torus[23]?D)[ \t]+\d",
        "an architecture of Scotch|topology|give it as --topology tree=2:2@10:100, lowest level first",
    ),
    (
        r"0\n\d+[ \t]+\d+\n[01][ \t]+[01]{3}[ \t]*\n",
        "a graph of Scotch (.grf)|graph|write it as a METIS graph, whose vertices count from 1",
    ),
    (
        r"#\s*OSU (MPI|OpenSHMEM|UPC|NCCL)\b",
        "output of OSU's own micro-benchmarks: records of osu_like_bench --json can be compared",
    ),
    (r"#Paraver \(", f"a trace of Paraver{_MATRIX}"),
    (r"\d+ templated_functions", f"a profile of TAU{_MATRIX}"),
    (r"Architecture:\s+\w+$|Machine \(\d+", "a description of one host (lscpu, lstopo): see topompi topology inside"),
    (r"CA '[\w-]+'$", "a report of one host's adapters (ibstat)|topology|ibnetdiscover's report is read"),
    (
        r"<!DOCTYPE topology SYSTEM|<topology(\s+version=\"[0-9.]+\")?\s*>",
        "hwloc XML, which describes one host (see topompi topology inside)",
        "FabricError",
    ),
    (r"<system version=", "a topology of NCCL (XML), which describes one host"),
    (r"<!DOCTYPE html|<html", "HTML"),
    (r"<graphml", "GraphML", "GraphFileError"),
    (r"@ mpiP", "a report of mpiP, which does not tell which ranks exchange messages", "ColocationError"),
    (r"<ipm(_job_profile)?\b", f"a profile of IPM (XML){_MATRIX}"),
    (r"<\?xml", "XML"),
    (r"c\d+-\d+c\d+s\d+a\d+l\d+\(\d+:\d+:\d+\)\s+\w+\s+->", "an interconnect dump of Cray Aries (rtr)"),
    (r"(osm_ucast_mgr_)?dump_ucast_routes: Switch 0x", "OpenSM's unicast routes with hops (opensm.fdbs)"),
    (
        r"\{ (SW|CA|RT) Ports:",
        "OpenSM's list of the subnet (opensm-subnet.lst)|topology|ibnetdiscover's report is read",
    ),
    (
        r"(CA|Switch):\s+.*:$|Switch 0x[0-9a-f]{16} ",
        "an iblinkinfo report|topology|iblinkinfo -l is read, because it has the GUIDs of both ends",
        "SourceError",
    ),
    (
        r"(Ca|Switch|Router)[ \t]+: 0x[0-9a-f]{16} ports ",
        "a list of nodes (ibhosts, ibswitches, ibnetdiscover -l), which has no cables|topology|"
        "ibnetdiscover's report is read",
    ),
    (
        r"[<>] (0x[0-9a-f]{16} |vendid=|switchguid=|caguid=|Switch\s|Ca\s|\[\d+\])",
        "differences of two reports (--diff)",
    ),
    (r"tleaf\s*$|deco \d|sub\s*$", "an architecture of Scotch"),
    (r"; (Version|Computer|UnixStartTime):", "a workload log in Standard Workload Format", "WorkloadError"),
    (r"(strict\s+)?(di)?graph(\s+(\w{1,200}|\"[^\"\n]{0,200}\"))?\s*\{", f"a graph in DOT{_MATRIX}"),
    (r"graph\s*\[", "a graph in GML", "GraphFileError"),
    (r"\*Vertices\s+\d", "a graph of Pajek", "GraphFileError"),
    (r"RingName=|TorusName=", "a ring or torus of Slurm", "SourceError"),
    (r"GPU0\s+.*\bCPU Affinity|GPU0\s+GPU1|GPU0\s+X\b", "nvidia-smi topo -m, which describes one host"),
    (r"exec_(host|vnode)\s*=|\(?[\w.-]+:ncpus=\d|[\w.-]+/\d+(\*\d+)?\+[\w.-]+/\d", _HOSTS.format("PBS"), ANY),
    (r"LSB_(HOSTS|MCPU_HOSTS|DJOB_HOSTFILE)=", _HOSTS.format("LSF"), ANY),
    (
        r"\d+ Links? in Fabric|Node Type (FI|SW)\b|\d+g\s+0x[0-9a-f]{16}\s+\d+\s+(FI|SW)\b",
        _OPAREPORT,
        "SourceError",
    ),
    (
        r"#\s*This database file was automatically generated by IBDIAG",
        "a report of ibdiagnet|topology|its db_csv is read",
        "SourceError",
    ),
    (
        r"(?<![ \t])switches:\s*$",
        "a model of topograph|topology|its answer, Slurm's topology.conf or labels of nodes, is read",
        "SourceError",
    ),
    (r"(- )?(resourceStatus|physicalHost):", "YAML of gcloud|topology|its --format=json is read", "SourceError"),
    (r"(Instances:|- InstanceId:)", "YAML of aws|topology|its --output json is read", "SourceError"),
    (
        r"(apiVersion: v1|- apiVersion: v1)",
        "YAML of Kubernetes|topology|kubectl get nodes -o json is read",
        "SourceError",
    ),
    (r"PARTITION\s+AVAIL\s+|NODELIST\s+", "a report of sinfo", ANY),
    (r"NodeName=\S+ ", "Slurm's nodes (scontrol show node, slurm.conf)", ANY),
    (r"#!\s*/", "a script"),
    (r"-----BEGIN ", "a key or certificate"),
)
_PATTERNS = [(re.compile(r"^[ \t]*(" + row[0] + ")", re.M), row[1], row[2:]) for row in _TEXT]
# Fields of JSON, all of which a format has near its beginning; a third word as in ``_TEXT``.
_JSON_KEYS: tuple[tuple[set[str], str, *tuple[str, ...]], ...] = (
    ({"pbs_version", "Jobs"}, "jobs of PBS (qstat -f -F json)"),
    ({"RECORDS", "JOBID"}, "jobs of LSF (bjobs -json)"),
    ({"t_submit"}, "jobs of Flux (flux jobs --json)"),
    ({"id", "state", "nodelist", "ntasks"}, "jobs of Flux (flux jobs --json)"),
    ({"timestamp", "name", "context"}, "an event log of Flux"),
    ({"job_number", "qname"}, "an accounting log of Grid Engine"),
    (
        {"job_id", "time", "submission"},
        "finished jobs of Slurm (sacct --json), a workload|running|squeue --json lists running ones",
        "WorkloadError",
        "ColocationError",
    ),
    (
        {"nodes", "links", "endpoints"},
        "a topology of containerlab (JSON)|topology|write its switches as SwitchName lines of Slurm",
    ),
    (
        {"edgePorts", "fabricPorts"},
        "HPE's template of a Slingshot fabric|topology|Slurm's topology.conf or your own source is read",
    ),
    (
        {"execution", "R_lite"},
        "a resource set of Flux (R), which lists hosts and no switches|topology|give them with --hosts",
        ANY,
    ),
    (
        {"graph", "nodes"},
        "a graph in JSON (JGF, as Flux writes it)|topology|write its racks as SwitchName lines of Slurm",
        "SourceError",
    ),
    (
        {"provider", "engine"},
        "a request to topograph|topology|its answer, Slurm's topology.conf or labels of nodes, is read",
        "SourceError",
    ),
    (
        {"Reservations"},
        "JSON of aws ec2 describe-instances|topology|that of describe-instance-topology is read",
        "SourceError",
    ),
    ({"peerHostname"}, "JSON of neighbours of switch ports (NetQ's or LLDP's)", "SourceError"),
    ({"source_guid", "destination_guid"}, "JSON of UFM (links)|topology|ibnetdiscover is read", "SourceError"),
    (
        {"customerHPCIslandId"},
        "metadata of one instance of OCI|topology|the list of its compute hosts is read",
        "SourceError",
    ),
    ({"lldp"}, "JSON of LLDP (neighbours of switch ports)", "SourceError"),
    ({"netq"}, "JSON of NetQ", "SourceError"),
    ({"blockdevices"}, "JSON of lsblk"),
)
# Lines of one host each, as in $PBS_NODEFILE, or of hosts with numbers of slots, as in LSB_MCPU_HOSTS.
_HOST_LINES = re.compile(
    r"(?:[ \t]*[A-Za-z][\w.-]*+(?:[ \t]+\d+)?(?:[ \t]+[A-Za-z][\w.-]*+[ \t]+\d+)*+[ \t]*(?:\r?\n|$))+"
)
_FORMAT = re.compile(r'"format"\s*:\s*"([^"]{1,60})"')
_BY_RANK = re.compile(r'\s*\{\s*"\d{1,9}"\s*:\s*\{')
_JSON_LINES = re.compile(r"\s*\{[^\n]*\}[ \t\r]*\n[ \t]*\{")
_FIELD = re.compile(r'"([^"\\]{1,40})"\s*:')


def kind_of(data: bytes, wanted: str = "") -> str:
    """Describe in words the kind of a file by its first kilobytes; if unknown, quote its first line.

    :param data: the first bytes of the file.
    :param wanted: what is expected in its place, by which the way out is chosen.
    """
    if not data.strip():
        return "an empty file"
    found = _recognised(data)
    if found is not None:
        return _with_way(found[0], wanted)
    if b"\x00" in data:
        return f"binary data that begins with {data[:8].hex(' ')}"
    text = _text(data)
    if text.lstrip()[:1] in ("{", "["):
        return _json_kind(text)
    if len(text.split()) > 1 and _HOST_LINES.fullmatch(text):
        return _with_way("a list of hosts, which has no switches|topology|give it with --hosts", wanted)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "control characters")
    return f"text that begins with {line if len(line) <= 60 else line[:57] + '...'!r}"


def foreign(data: bytes, readers: Collection[str], wanted: str = "") -> str:
    """Describe the kind of a file that readers do not read; empty if the kind is unknown, or one that they read.

    :param data: the first bytes of the file.
    :param readers: names of the error classes of the readers.
    :param wanted: what they expect, by which the way out is chosen.
    """
    name, known = _recognised(data) or ("", ())
    return "" if {ANY, *readers} & set(known) else _with_way(name, wanted)


def _with_way(name: str, wanted: str) -> str:
    """Return a name with its way out if that helps where something is expected, else with what is read there."""
    name, _, limited = name.partition("|")
    word, _, way = limited.partition("|")
    if not (way and word in wanted):
        way = "" if ": " in name else next((read for expected, read in READ.items() if expected in wanted), "")
    return f"{name}: {way}" if name and way else name


def _recognised(data: bytes) -> tuple[str, tuple[str, ...]] | None:
    """Return the name of a kind, and the error classes of its readers; None if the kind is unknown."""
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            return name, (ANY,) if magic in _READ else ()
    text = _text(data)
    if b"\x00" in data:
        return None
    for pattern, name, readers in _PATTERNS:
        if pattern.search(text):
            return name, readers
    if text.lstrip()[:1] not in ("{", "["):
        return None
    fields = set(_FIELD.findall(text))
    known = next(((name, tuple(readers)) for keys, name, *readers in _JSON_KEYS if keys <= fields), None)
    if known is None and _BY_RANK.match(text):
        return f"JSON of objects by rank{_MATRIX}", ()
    return known or (("JSON lines: write one JSON list", ()) if _JSON_LINES.match(text) else None)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").lstrip("\ufeff")


def _json_kind(text: str) -> str:
    fields = list(dict.fromkeys(_FIELD.findall(text)))
    own = _FORMAT.search(text)
    if own:
        return f"JSON of the format {json.dumps(own[1])}"
    return f"JSON with the fields {', '.join(fields[:5])}" if fields else "JSON without fields"
