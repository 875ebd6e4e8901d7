"""Recognition, by their first bytes, of files that topompi cannot read, so that an error can name their kind."""

from __future__ import annotations

import json
import re

__all__ = ["kind_of"]

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
    b"\x93NUMPY": "one NumPy array (.npy): write it to .npz by name",
    b"\x89HDF\r\n": "HDF5",
    b"MATLAB 5.0 MAT-file": "a MATLAB file (.mat)",
    b"%PDF": "PDF",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x7fELF": "a program (ELF)",
    b"SQLite format 3": "an SQLite database",
    b"PAR1": "Parquet",
    b"\x80\x04\x95": "a Python pickle, which is never read",
    b"\xff\xfe": "text in UTF-16: write it in UTF-8",
    b"\xfe\xff": "text in UTF-16: write it in UTF-8",
}
_HOSTS = "hosts of a job of {}, which have no switches: give them with --hosts"
# Patterns at the start of a line, each with the name by which users know the format.
_TEXT: tuple[tuple[str, str], ...] = (
    (
        r"<!DOCTYPE topology SYSTEM|<topology(\s+version=\"[0-9.]+\")?\s*>",
        "hwloc XML, which describes one host (see topompi topology inside)",
    ),
    (r"<system version=", "a topology of NCCL (XML), which describes one host"),
    (r"<!DOCTYPE html|<html", "HTML"),
    (r"<graphml", "GraphML"),
    (r"@ mpiP", "a report of mpiP, which does not tell which ranks exchange messages"),
    (r"<ipm(_job_profile)?\b", "a profile of IPM (XML)"),
    (r"<\?xml", "XML"),
    (r"c\d+-\d+c\d+s\d+a\d+l\d+\(\d+:\d+:\d+\)\s+\w+\s+->", "an interconnect dump of Cray Aries (rtr)"),
    (r"(osm_ucast_mgr_)?dump_ucast_routes: Switch 0x", "OpenSM's unicast routes with hops (opensm.fdbs)"),
    (r"\{ (SW|CA|RT) Ports:", "OpenSM's list of the subnet (opensm-subnet.lst)"),
    (
        r"(CA|Switch):\s+.*:$|Switch 0x[0-9a-f]{16} ",
        "an iblinkinfo report: iblinkinfo -l is read, because it has the GUIDs of both ends",
    ),
    (r"(Ca|Switch)\t: 0x[0-9a-f]{16} ports ", "a list of nodes (ibhosts, ibswitches)"),
    (r"tleaf\s*$|deco \d|sub\s*$", "an architecture of Scotch"),
    (r"; (Version|Computer|UnixStartTime):", "a workload log in Standard Workload Format"),
    (r"(strict\s+)?(di)?graph\s+\S*\s*\{", "a graph in DOT"),
    (r"graph\s*\[", "a graph in GML"),
    (r"\*Vertices\s+\d", "a graph of Pajek"),
    (r"RingName=|TorusName=", "a ring or torus of Slurm"),
    (r"\s*(GPU0\s+.*\bCPU Affinity|GPU0\s+GPU1|GPU0\s+X\b)", "nvidia-smi topo -m, which describes one host"),
    (r"exec_(host|vnode)\s*=|\(?[\w.-]+:ncpus=\d|[\w.-]+/\d+(\*\d+)?\+[\w.-]+/\d", _HOSTS.format("PBS")),
    (r"LSB_(HOSTS|MCPU_HOSTS|DJOB_HOSTFILE)=", _HOSTS.format("LSF")),
    (r"(apiVersion: v1|- apiVersion: v1)", "YAML of Kubernetes: kubectl get nodes -o json is read"),
    (r"PARTITION\s+AVAIL\s+|NODELIST\s+", "a report of sinfo"),
    (r"NodeName=\S+ ", "Slurm's nodes (scontrol show node, slurm.conf)"),
    (r"#!\s*/", "a script"),
    (r"-----BEGIN ", "a key or certificate"),
)
_PATTERNS = tuple((re.compile(r"^[ \t]*(" + pattern + ")", re.M), name) for pattern, name in _TEXT)
_JSON_KEYS = (
    ({"execution", "R_lite"}, "a resource set of Flux (R), which lists hosts and no switches: give them with --hosts"),
    ({"graph", "nodes"}, "a graph in JSON (JGF, as Flux writes it): write its racks as SwitchName lines of Slurm"),
    ({"provider", "engine"}, "a request to topograph, whose answer, Slurm's topology.conf or labels of nodes, is read"),
    ({"Reservations"}, "JSON of aws ec2 describe-instances: that of describe-instance-topology is read"),
    ({"peerHostname"}, "JSON of neighbours of switch ports (NetQ's or LLDP's)"),
    ({"lldp"}, "JSON of LLDP (neighbours of switch ports)"),
    ({"netq"}, "JSON of NetQ"),
    ({"blockdevices"}, "JSON of lsblk"),
)
_FORMAT = re.compile(r'"format"\s*:\s*"([^"]{1,60})"')
_FIELD = re.compile(r'"([^"\\]{1,40})"\s*:')


def kind_of(data: bytes) -> str:
    """Describe in words the kind of a file by its first kilobytes; if unknown, quote its first line.

    :param data: the first bytes of the file.
    """
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            return name
    if not data.strip():
        return "an empty file"
    if b"\x00" in data:
        return f"binary data that begins with {data[:8].hex(' ')}"
    text = data.decode("utf-8", errors="replace").lstrip("\ufeff")
    for pattern, name in _PATTERNS:
        if pattern.search(text):
            return name
    if text.lstrip()[:1] in ("{", "["):
        return _json_kind(text)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "control characters")
    return f"text that begins with {line if len(line) <= 60 else line[:57] + '...'!r}"


def _json_kind(text: str) -> str:
    fields = list(dict.fromkeys(_FIELD.findall(text)))
    for keys, name in _JSON_KEYS:
        if keys <= set(fields):
            return name
    own = _FORMAT.search(text)
    if own:
        return f"JSON of the format {json.dumps(own[1])}"
    return f"JSON with the fields {', '.join(fields[:5])}" if fields else "JSON without fields"
