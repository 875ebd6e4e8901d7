"""Input files: opened, unpacked and read within limits; a refusal is a TopompiError with file, member and line."""

import gzip
import io
import json
import lzma
import os
import socket
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.ibreports import default_report, pair
from tests.support import ROOT, shared_data
from topompi.errors import SettingError, SourceError, TopompiError
from topompi.inputs import Limits, current_limits, kind_of, open_inputs, parse_json
from topompi.inputs.caches import read_cache, write_cache
from topompi.inputs.hostlist import read_hosts
from topompi.inputs.kernel import kernel_bytes, kernel_text
from topompi.inputs.limits import parse_limits, raise_limits
from topompi.machine.colocation.estimates.records import read_records
from topompi.machine.colocation.speedups.files import read_speedups
from topompi.machine.jobs import read_workload
from topompi.mapping.rankfiles import read_mapping
from topompi.mapping.readers import read_graph
from topompi.mpi.selection.rules import Rules
from topompi.mpi.tuning.record import TuneRecord
from topompi.schedules.exports.jsonio import from_json
from topompi.topology import load

SLURM = b"SwitchName=s Nodes=n[1-4]\n"
READERS = {
    "topology": load,
    "forwarding tables": lambda path: load("xgft:2;1", path),
    "graph": read_graph,
    "mapping": read_mapping,
    "rules": Rules.read,
    "hosts": lambda path: read_hosts(str(path)),
    "record": TuneRecord.read,
}


@pytest.fixture
def limited(monkeypatch):
    """Sets limits as the environment does."""
    return lambda text: monkeypatch.setenv("TOPOMPI_LIMITS", text)


def refusal(reader, path) -> str:
    """The words of the error that a reader raises."""
    with pytest.raises(TopompiError) as caught:
        READERS[reader](path)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def in_archive(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
@pytest.mark.parametrize("damage", ["cut", "flipped", "head"])
def test_a_damaged_archive_is_refused_with_its_name(tmp_path, reader, pack, damage):
    packed = bytearray(pack(os.urandom(3000).hex().encode()))
    if damage == "cut":
        del packed[-100:]
    else:
        packed[len(packed) // 2 if damage == "flipped" else 10] ^= 0x55
    (tmp_path / "packed").write_bytes(packed)
    assert refusal(reader, tmp_path / "packed").startswith(f"{tmp_path / 'packed'}: cannot be read")


SOUND = in_archive(("a", SLURM), ("b", SLURM))


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (
            SOUND[:1024] + b"x" * 512 + SOUND[1536:],
            ": cannot be read, it is damaged: no header of a member at byte 1,024",
        ),
        (SOUND[:700], ":a: cannot be read, it or what follows is damaged: unexpected end of data"),
        (SOUND[:520], ":a: cannot be read: the archive ends within it"),
        (SOUND[:1100], ": cannot be read, it is damaged: no header of a member at byte 1,024"),
        (SOUND[:257] + b"ustar" + b"\xff" * 250, ": cannot be read, it is damaged: "),
    ],
)
@pytest.mark.parametrize("pack", [bytes, lzma.compress])
def test_a_damaged_tar_archive_is_refused_with_member_or_place(tmp_path, archive, words, pack):
    (tmp_path / "f.tar").write_bytes(pack(archive))
    assert words in refusal("topology", tmp_path / "f.tar")


def test_members_are_read_from_packed_and_plain_archives_and_named(tmp_path):
    content = in_archive(("sub/fabric", SLURM), ("notes", b"none\n"), ("empty", b""))
    for pack in (bytes, lzma.compress, gzip.compress):
        (tmp_path / "f").write_bytes(pack(content))
        inputs = open_inputs(tmp_path / "f")
        assert [one.name for one in inputs] == [f"{tmp_path}/f:{name}" for name in ("empty", "notes", "sub/fabric")]
        assert [one.data() for one in inputs] == [b"", b"none\n", SLURM]
        assert load(tmp_path / "f").fabric.num_hosts == 4
    (tmp_path / "f").write_bytes(in_archive(("a/x", b"SwitchName=s Nodes=n[\n")))
    assert f"{tmp_path}/f:a/x:1: " in refusal("topology", tmp_path / "f")


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "content", "reader", "words"),
    [
        ("bytes=20", SLURM, "topology", "at most 20 bytes, got 26"),
        ("bytes=20", b"0 1 5\n" * 9, "graph", "at most 20 bytes, got 54"),
        ("bytes=20", lzma.compress(SLURM), "topology", "at most 20 bytes, got 26"),
        ("members=1", in_archive(("a", SLURM), ("b", b"notes\n")), "topology", "at most 1 members, got 2"),
        ("hosts=3", SLURM, "topology", "at most 3 names, got more"),
        ("hosts=7", b"SwitchName=s Nodes=n[1-4]\nSwitchName=t Nodes=m[1-4]\n", "topology", "at most 7 hosts, got 8"),
        ("hosts=3", default_report(pair(2)).encode(), "topology", ""),
        ("hosts=1", default_report(pair()).encode(), "topology", "at most 1 hosts, got 2"),
        ("ranks=2", b"0 2 5\n", "graph", "at most 2 ranks, got 3"),
        ("ranks=3", b"n1\nn2\nn[3-4]\n", "hosts", "at most 3 ranks, got 4"),
        (
            "routes=3",
            b"SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=s Switches=a,b\n",
            "topology",
            "at most 3 entries in tables of routes, got 4",
        ),
    ],
)
def test_each_limit_is_named_with_what_was_asked_for(tmp_path, limited, limit, content, reader, words):
    path = tmp_path / "f"
    path.write_bytes(content)
    READERS[reader](path)
    if not words:
        return
    limited(limit)
    found = refusal(reader, path)
    assert f"expecting {words}" in found
    assert f"raise this with --limit {limit.partition('=')[0]}=NUMBER" in found


def test_seconds_end_the_reading_of_what_is_long(tmp_path, limited):
    (tmp_path / "f").write_bytes(b"# nothing\n" * 10_000 + SLURM)
    limited("seconds=0")
    assert "at most 0 seconds" in refusal("topology", tmp_path / "f")


def test_an_option_raises_over_the_environment_and_is_forgotten_again(limited):
    limited("hosts=5,bytes=1K")
    try:
        raise_limits(["hosts=1M", "members=2"])
        assert current_limits() == Limits(hosts=1 << 20, bytes=1024, members=2)
    finally:
        raise_limits([])
    assert current_limits() == Limits(hosts=5, bytes=1024)


@pytest.mark.parametrize("text", ["hosts", "hosts=", "hosts=-1", "hosts=1X", "guests=1", "hosts=" + "9" * 20])
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(SettingError, match=r"^TOPOMPI_LIMITS: expecting NAME=NUMBER with a name of bytes, ratio, "):
        parse_limits(text)


def test_the_commands_take_a_limit_and_the_environment_is_checked(tmp_path):
    (tmp_path / "f").write_bytes(SLURM)

    def said(*options: str, **variables: str) -> str:
        command = [sys.executable, "-m", "topompi", "topology", "show", str(tmp_path / "f"), *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **variables})
        return done.stderr if done.returncode else "shown"

    assert said(TOPOMPI_LIMITS="hosts=2").startswith("topompi: ")
    assert said("--limit", "hosts=4", TOPOMPI_LIMITS="hosts=2") == "shown"
    assert "NAME=NUMBER" in said("--limit", "x=4")


# --- little that asks for much -------------------------------------------------------------------------------------


def test_a_gibibyte_in_little_is_refused_on_the_way(tmp_path):
    path = tmp_path / "f.xz"
    path.write_bytes(lzma.compress(b"\n" * (1 << 22)) * 256)
    assert path.stat().st_size < 200_000
    for reader in ("topology", "graph", "rules"):
        assert "times its size when unpacked" in refusal(reader, path)


MARKET = "%%MatrixMarket matrix "
PROMISES = {
    "rank": ("0 2147483646 1", "at most 8,388,608 ranks, got 2,147,483,647"),
    "METIS": ("2147483647 1\n2\n1\n", ":1: expecting at most 8,388,608 ranks, got 2,147,483,647"),
    "array": (
        f"{MARKET}array real general\n100000 100000\n1\n",
        "expecting 10,000,000,000 entries, as its header says",
    ),
    "coordinates": (f"{MARKET}coordinate real general\n100 100 {10**9}\n1 1 1\n", "expecting 1,000,000,000 entries"),
    "rows": (f"{MARKET}coordinate real general\n{2**40} {2**40} 1\n1 1 1\n", "at most 8,388,608 ranks"),
}


@pytest.mark.parametrize("case", PROMISES)
def test_a_promise_that_the_file_cannot_hold_is_refused(tmp_path, case):
    text, words = PROMISES[case]
    (tmp_path / "f").write_text(text)
    assert words in refusal("graph", tmp_path / "f")


@pytest.mark.parametrize("entry", ["2 1 7\x005", "2 1 0x" + "f" * 40, "2 1 7\xff", "9" * 500 + " 1 1", "2 1 5x"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_matrix_with_what_is_no_number_is_refused_with_its_line(tmp_path, entry, end):
    (tmp_path / "f").write_text(f"{MARKET}coordinate real general\n% none\n3 3 2\n1 1 5\n{entry}{end}", "latin1")
    assert f"{tmp_path / 'f'}:5: expecting the numbers of an entry, got " in refusal("graph", tmp_path / "f")
    (tmp_path / "f").write_text(f"{MARKET}coordinate real general\n3 3 {entry}{end}", "latin1")
    assert f"{tmp_path / 'f'}:2: expecting extents and entries" in refusal("graph", tmp_path / "f")


def test_few_bytes_that_stand_for_many_names_are_refused(tmp_path):
    (tmp_path / "f").write_text("".join(f"SwitchName=s{i} Nodes=n{i}x[1-100000]\n" for i in range(100)))
    assert f"{tmp_path / 'f'}:3: expecting at most 262,144 hosts, got 300,000" in refusal("topology", tmp_path / "f")
    (tmp_path / "f").write_text("x" * 300 + "[1-9]")
    assert "expecting names of at most 255 characters" in refusal("hosts", tmp_path / "f")


def test_runs_that_stand_for_rows_without_end_are_refused():
    run = {"start": [0], "stride": [0], "length": [2**31 - 1]}
    names = "step source destination source_buffer source_block destination_buffer destination_block count operation"
    head = {"collective": "alltoall", "size": 3, "algorithm": "x", "root": None, "blocks": 1, "counts": None}
    head |= {"schedule": 1, "independent": True, "window": 1, "rows": 2**31 - 1}
    with pytest.raises(ValueError, match=r"rows: expecting at most 16,777,216 rows, got 2,147,483,647") as caught:
        from_json(json.dumps({**head, "columns": dict.fromkeys(names.split(), run)}))
    assert isinstance(caught.value, TopompiError)


# --- numbers -------------------------------------------------------------------------------------------------------

REPORT = default_report(pair())
FABRIC = '{"format": "topompi fabric", "version": 1, "name": "x", "hosts": ["a"],'
FABRIC += ' "adapters": {"id": ["A"], "host": [%s]}, "switches": {"id": ["S"], "name": ["S"]},'
FABRIC += (
    ' "links": {"source": [0], "target": [1], "source_port": [1], "target_port": [1], "rate": [%s], "latency": [1]}}'
)
GRAPH = '{"format": "topompi graph", "version": 1, "size": 2, "source": [0], "target": [1], "volume": [%s]}'
RULES = '{"format": "topompi rules", "version": 1, "rules": [{"bytes": %s, "algorithm": "native"}]}'


@pytest.mark.parametrize("number", ["1" + "0" * 400, "9" * 5000])
@pytest.mark.parametrize(
    ("reader", "text", "place"),
    [
        ("topology", REPORT.replace("[1](", "[%s](", 1), ":"),
        ("topology", FABRIC % ("%s", "1"), ": field adapters.host[0]: "),
        ("topology", FABRIC % ("0", "%s"), ": field links.rate[0]: "),
        ("topology", "SwitchName=s Nodes=n[%s]\n", ":1: "),
        ("topology", "0: 0 0 0\n1: 0 0 %s\n", ":2: "),
        ("graph", "0 1 5\n0 %s 5\n", ":2: "),
        ("graph", "0 1 5\n0 1 %s\n", ":2: "),
        ("graph", "%s 1 001\n", ":1: "),
        ("graph", "2 1 011 %s\n\n\n", ":1: "),
        ("graph", GRAPH, ": expecting volume[0]"),
        ("mapping", "rank %s=h slot=0\n", ":1: "),
        ("rules", RULES, ": rule 1: bytes: "),
        ("hosts", "n1\nn[1-%s]\n", ":2: "),
    ],
)
def test_a_number_without_end_is_refused_with_its_place(tmp_path, reader, text, place, number):
    path = tmp_path / "f"
    path.write_text(text.replace("%s", number))
    assert refusal(reader, path).startswith(f"{path}{place}")


def test_json_is_refused_with_its_line(tmp_path):
    for text, words in (
        ('{"a":\n 1,}', "f:2: expecting JSON: "),
        (b'{"a":\n "\xff"}', "f:2: expecting JSON in UTF-8"),
        ("[" * 100_000, "f: expecting JSON with brackets nested within reason"),
        ('{"a": NaN}', "f: expecting JSON, got NaN"),
    ):
        with pytest.raises(SourceError, match=f"^{words}"):
            parse_json(text, "f", SourceError)
    assert parse_json("9" * 5000, "f", SourceError) == float("inf")


# --- what is no file, and what nobody reads ------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, reader):
    os.mkfifo(tmp_path / "fifo")
    assert f"{tmp_path / 'fifo'}: expecting a regular file, got a FIFO" in refusal(reader, tmp_path / "fifo")
    assert "/dev/zero: expecting a regular file, got a character device" in refusal(reader, Path("/dev/zero"))
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        assert "expecting a regular file, got a socket" in refusal(reader, tmp_path / "socket")
    if reader in ("mapping", "rules", "record"):
        assert f"{tmp_path}: expecting a regular file, got a directory" in refusal(reader, tmp_path)
    assert "a directory" in refusal("hosts", f"{tmp_path}/")


NETQ = b'{"lldp": [{"hostname": "leaf01", "ifname": "swp1", "peerHostname": "spine01", "peerIfname": "swp2"}]}'
KINDS = {
    "Aries": (b"c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)\n", "an interconnect dump of Cray Aries (rtr)"),
    "NetQ": (NETQ, "JSON of neighbours of switch ports (NetQ's or LLDP's)"),
    "hwloc": (
        b'<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n',
        "hwloc XML, which describes one host (see topompi topology inside)",
    ),
    "text": (b"hello there\nyou\n", "text that begins with 'hello there'"),
    "rules": (b'{"format": "topompi rules", "version": 1}', 'JSON of the format "topompi rules"'),
    "JSON": (b'{"a": 1, "b": {"c": 2}}', "JSON with the fields a, b, c"),
    "HTML": (b"<!DOCTYPE html>\n<html>", "HTML"),
    "log": (b"; Version: 2.2\n; Computer: x\n", "a workload log in Standard Workload Format"),
    "bzip2": (b"BZh91AY&SY", "a bzip2 archive: unpack it first"),
    "binary": (b"ab\x00\x01", "binary data that begins with 61 62 00 01"),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_file_that_nobody_reads_is_named_for_what_it_is(tmp_path, case):
    content, kind = KINDS[case]
    path = tmp_path / "f"
    path.write_bytes(content)
    assert kind_of(content) == kind
    for reader in ("topology", "graph"):
        assert f"got {kind}" in refusal(reader, path)


def test_of_many_files_the_commonest_kinds_are_named(tmp_path):
    for number, content in enumerate([b"; Version: 2\n"] * 3 + [NETQ] * 2):
        (tmp_path / str(number)).write_bytes(content)
    assert "got 5 files, 3 of a workload log in" in refusal("topology", tmp_path)


REAL = (
    *(("topology", f"fabrics/{name}") for name in ("janus-2014.ibnetdiscover.xz", "stage-fdr10-2014.ibnetdiscover.xz")),
    *(("topology", f"fabrics/{name}") for name in ("janus.topology.conf", "leonardo-nodemap.txt.xz")),
    ("hosts", "fabrics/leonardo-job-nodelists.tar.gz"),
    *(("graph", f"commgraphs/{name}-1000.graphStats.txt.xz") for name in ("lulesh", "miniamr")),
)


@pytest.mark.parametrize(("reader", "name"), REAL)
def test_real_files_are_read_at_the_default_limits(reader, name):
    assert READERS[reader](shared_data(name))


# --- caches --------------------------------------------------------------------------------------------------------


def is_object(value: object) -> bool:
    return isinstance(value, dict)


def test_a_cache_is_for_its_owner_and_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "cache.json"
    old = os.umask(0)
    try:
        write_cache(path, '{"a": 1}')
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    held = path.open()
    write_cache(path, '{"a": 2}')
    assert held.read() == '{"a": 1}'  # who reads the old file reads all of it
    held.close()
    assert read_cache(path, is_object) == {"a": 2}
    assert os.listdir(path.parent) == ["cache.json"]


@pytest.mark.parametrize("content", [b"", b'{"a"', b"\xff\xfe", b"[1]", b"[" * 100_000, lzma.compress(b"{}")[:20]])
def test_a_damaged_cache_is_ignored_with_one_note(tmp_path, capfd, content):
    path = tmp_path / "cache.json"
    path.write_bytes(content)
    assert read_cache(path, is_object) is None
    assert read_cache(path, is_object) is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"topompi: {path}")
    assert line.endswith("; ignored")
    write_cache(path, "{}")
    assert read_cache(path, is_object) == {}
    assert read_cache(tmp_path / "absent", is_object) is None
    assert capfd.readouterr().err == ""


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    write_cache(tmp_path / "file" / "cache.json", "{}")


@pytest.mark.parametrize("digits", [20, 300, 301, 400, 5000])
def test_a_whole_number_of_json_can_always_be_a_real_one(digits):
    (whole,) = parse_json(f"[{'9' * digits}]", "f", SourceError)
    assert float(whole) >= 1e19
    assert parse_json(f'"{"9" * digits}"', "f", SourceError) == "9" * digits


@pytest.mark.parametrize("digits", [30, 400, 5000])
def test_counts_with_more_digits_than_numpy_takes_are_refused(tmp_path, digits):
    many = "1" * digits
    texts = {
        read_speedups: f"application,processes,beside,group,seconds\na,{many},compact,1,10\n",
        read_records: f'{{"format":"topompi shutter log","version":1}}\n["during","a",0,1,2,-{many}]\n["x"]\n',
    }
    for read, text in texts.items():
        (tmp_path / "f").write_text(text)
        with pytest.raises(TopompiError, match=r"f: line 2|f:2: "):
            read(tmp_path / "f")


def test_a_file_of_the_kernel_is_read_up_to_a_bound_and_may_be_missing(tmp_path):
    assert kernel_bytes("/proc/self/cmdline") == Path("/proc/self/cmdline").read_bytes()
    assert kernel_bytes("/dev/zero", 5) == bytes(5)
    (tmp_path / "value").write_bytes(b" \xff7\n")
    os.mkfifo(tmp_path / "fifo")
    assert kernel_text(tmp_path / "value") == "\ufffd7"
    assert [kernel_bytes(tmp_path / name) for name in ("none", "", "fifo")] == [None, None, b""]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (load, "START_NODES\nNodeType,NodeDesc\n{}\nEND_NODES\n"),
        (lambda path: read_workload(path, 4), "JobID,State,Submit,Start,End,NNodes\n{}\n"),
        (read_graph, "source,target,volume\n0,1,{}\n"),
    ],
)
def test_a_field_in_quotes_that_is_too_long_is_refused(tmp_path, read, text):
    (tmp_path / "f").write_text(text.format('"' + "a" * 140_000 + '"'))
    with pytest.raises(TopompiError, match=r"f:.*expecting"):
        read(tmp_path / "f")
