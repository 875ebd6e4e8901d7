"""Inputs that were made to hurt: a few bytes that ask for much, damage in every layer, numbers without end."""

import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
from functools import cache

import numpy as np

from tests.fuzz.seeds import small

__all__ = ["crafted", "promises"]

_HUGE = ("1" + "0" * 400, "9" * 5000)


@cache
def crafted() -> tuple[tuple[str, str, bytes], ...]:
    """Name, reader and content."""
    cases = [*_archives(), *promises(), *_numbers(), *_texts()]
    return tuple(cases)


def _archives() -> list[tuple[str, str, bytes]]:
    text = dict(small())["hosts"] * 4000
    found = []
    for name, pack in (("xz", lzma.compress), ("gzip", gzip.compress)):
        packed = pack(b"SwitchName=s Nodes=n[1-4]\n" * 3000)
        for cut in (7, 20, len(packed) // 2, len(packed) - 9):
            found.append((f"{name} cut at {cut}", "topology", packed[:cut]))
            found.append((f"{name} damaged at {cut}", "topology", packed[:cut] + b"\x5a\xa5\x5a" + packed[cut + 3 :]))
        for reader in ("graph", "rank file", "rules", "schedule", "tune record", "model", "hosts", "memory"):
            found.append((f"{name} cut, as {reader}", reader, pack(text)[:60]))
    for filled in (b"\x00", b"\n", b"0 1 5\n", b"SwitchName=s Nodes=n1\n"):
        streams = lzma.compress(filled * ((1 << 22) // len(filled))) * 256  # 1 GiB, as so many streams
        found += [(f"bomb of {filled!r}", reader, streams) for reader in ("topology", "graph", "rules", "hosts")]
    return [*found, *_tars()]


def _tars() -> list[tuple[str, str, bytes]]:
    def packed(*members: tuple[str, int, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
        file = io.BytesIO()
        for name, size, content in members:
            info = tarfile.TarInfo(name)
            info.size = size
            file.write(info.tobuf(form) + content.ljust(-(-len(content) // 512) * 512, b"\x00"))
        return file.getvalue() + bytes(1024)

    slurm = b"SwitchName=s Nodes=n[1-4]\n"
    sound = packed(("a", len(slurm), slurm), ("b", 0, b""))
    damaged = bytearray(packed(("a", len(slurm), slurm), ("b", len(slurm), slurm)))
    damaged[1024 + 148 : 1024 + 156] = b"99999999"
    names = b"".join(tarfile.TarInfo(f"{number:06d}").tobuf() for number in range(70_000)) + bytes(1024)
    long_names = (struct.pack("100s", b"././@LongLink") + b"0000644\x00" * 3 + b"00000000005\x00" + b"0" * 12) * 2000
    found = {
        "member longer than the archive": packed(("a", 1 << 33, slurm)),
        "second header damaged": bytes(damaged),
        "cut within a member": sound[:520],
        "cut within a header": sound[:300],
        "70,000 members": names,
        "70,000 members, packed": lzma.compress(names),
        "long names without end": long_names,
        "negative size": packed(("a", len(slurm), slurm)).replace(b"00000000032", b"-0000000032"),
        "pax header of nonsense": packed(("a", len(slurm), slurm), form=tarfile.PAX_FORMAT).replace(b"ustar", b"ustar"),
    }
    return [(name, reader, data) for name, data in found.items() for reader in ("topology", "hosts")]


def promises() -> list[tuple[str, str, bytes]]:
    """Name, reader and content of little that asks for much."""
    market = "%%MatrixMarket matrix "
    texts = {
        "a rank far away": "0 2147483646 1",
        "METIS of 10^17 vertices": f"{10**17} 1\n2\n1\n",
        "METIS of 2^31 vertices": "2147483647 1\n",
        "METIS of 10^9 weights": "2 1 010 999999999\n1\n1\n",
        "coordinates of 10^10": f"{market}coordinate real general\n100000 100000 10000000000\n1 1 1\n",
        "coordinates, 2^40 rows": f"{market}coordinate real general\n{2**40} {2**40} 1\n1 1 1\n",
        "array of 10^10": f"{market}array real general\n100000 100000\n1\n",
        "array, symmetric": f"{market}array real symmetric\n100000 100000\n1\n",
        "entry outside": f"{market}coordinate real general\n3 3 1\n9 9 1\n",
        "JSON of 2^31 ranks": '{"format": "topompi graph", "version": 1, "size": 2147483647,'
        ' "source": [], "target": [], "volume": []}',
    }
    found = [(name, "graph", text.encode()) for name, text in texts.items()]
    found += [(f"npz: {name}", "graph", data) for name, data in _npz().items()]
    hosts = "n[1-99999999]", "a[0-999]b[0-999]c[0-999]", "x" * 100_000 + "[1-200000]"
    found += [(f"host list {text[:20]}", "hosts", text.encode()) for text in hosts]
    many = "".join(f"SwitchName=s{i} Nodes=n{i}x[1-200000]\n" for i in range(500))
    yaml = "- topology: t\n  tree:\n    switches:\n" + "".join(
        f"      - switch: s{i}\n        nodes: n{i}x[1-200000]\n" for i in range(500)
    )
    found += [("many hosts", "topology", many.encode()), ("many hosts, YAML", "topology", yaml.encode())]
    chain = "".join(f"SwitchName=s{i} Nodes=n{i}\n" for i in range(25_000))
    found += [("more routes than memory", "topology", chain.encode())]
    run = '{"start":[0],"stride":[0],"length":[2147483647]}'
    wide = json.loads(dict(small())["schedule"])
    wide |= {"rows": 2**31 - 1, "columns": {name: json.loads(run) for name in wide["columns"]}}
    slots = "# topompi mapping: 1 ranks on 1 hosts, allocation {}\n# host h slots 999999999999999999\nrank 0=h slot=0\n"
    whole = {"format": "topompi mapping", "version": 1, "hosts": ["h"], "slots": [2**31 - 1], "slot_of_rank": [0]}
    found += [("rows without end", "schedule", json.dumps(wide).encode())]
    return [*found, *((f"slots {i}", "rank file alone", one) for i, one in enumerate(_slots(slots, whole)))]


def _slots(text: str, whole: dict[str, object]) -> list[bytes]:
    from topompi.mapping.machine import allocation_digest

    digest = allocation_digest(["h"], np.array([999999999999999999]))
    whole["digest"] = allocation_digest(["h"], np.array([2**31 - 1]))
    return [text.format(digest).encode(), json.dumps(whole).encode()]


def _npz() -> dict[str, bytes]:
    def header(shape: str, descr: str = "<i8", content: bytes = b"") -> bytes:
        text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        text = text.ljust(-(-(len(text) + 11) // 64) * 64 - 11) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content

    def packed(arrays: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, data in arrays.items():
                archive.writestr(f"{name}.npy", data)
        return file.getvalue()

    def saved(**arrays: object) -> bytes:
        file = io.BytesIO()
        np.savez(file, **{name: np.asarray(one) for name, one in arrays.items()})
        return file.getvalue()

    csr = {"format": b"csr", "shape": [4, 4], "data": [1, 1], "indices": [0, 1]}
    sound = saved(matrix=[[0, 1], [1, 0]])
    return {
        "373 GiB": packed({"matrix": header("(223000, 223000)")}),
        "negative shape": packed({"matrix": header("(-1, 5)")}),
        "zeros": packed({"matrix": header("(8192, 8192)", "|u1", bytes(1 << 26))}, zipfile.ZIP_DEFLATED),
        "objects": packed({"matrix": header("(1,)", "|O")}),
        "not a header": packed({"matrix": b"\x93NUMPY\x01\x00\xff\x00{(" + b"(" * 300}),
        "no array": packed({"matrix": b"hello"}),
        "format 9": packed({"matrix": b"\x93NUMPY\x09\x00" + bytes(200)}),
        "cut": sound[: len(sound) // 2],
        "rows that jump": saved(**csr, indptr=[0, 10**6, 1, 1, 2]),
        "rows of too few": saved(**csr, indptr=[0, 1]),
        "columns outside": saved(**{**csr, "indices": [10**6, -5]}, indptr=[0, 1, 1, 1, 2]),
        "sparse, 2^40 rows": saved(format=b"coo", shape=[2**40, 2**40], data=[1], row=[2**39], col=[0]),
        "sparse, 3-d": saved(format=b"coo", shape=[2, 2, 2], data=[1], coords=[[0], [1], [1]], _is_array=True),
        "sparse, unknown": saved(format=b"xyz", shape=[2, 2], data=[1]),
        "size of several": saved(source=[0], target=[1], volume=[1], size=[1, 2]),
        "size of nan": saved(source=[0], target=[1], volume=[1], size=np.nan),
        "source of no dimension": saved(source=0, target=[1], volume=[1]),
        "a rank of 2^62": saved(source=[2**62], target=[1], volume=[1]),
    }


def _numbers() -> list[tuple[str, str, bytes]]:
    """Each number of each small text once 10^400, once of 5,000 digits."""
    from tests.fuzz.mutations import DIGITS

    found = []
    for place, (reader, data) in enumerate(small()):
        if b"\x00" in data:
            continue
        matches = list(DIGITS.finditer(data))
        for match in matches[:: max(1, len(matches) // 40)]:
            for huge in _HUGE:
                changed = data[: match.start()] + huge.encode() + data[match.end() :]
                found.append((f"{huge[:2]}... at {match.start()} of {place}", reader, changed))
    return found


def _texts() -> list[tuple[str, str, bytes]]:
    texts = {
        "nested JSON": b"[" * 200_000,
        "nested objects": b'{"format": "topompi fabric", "x": ' * 50_000,
        "nested YAML": b"- topology: " + b"[" * 20_000,
        "laughs": b"- topology: &a [x]\n  tree: &b [*a, *a]\n" + b"  flat: *b\n",
        "no UTF-8": b"\xff\xfe\x00\x01" * 100,
        "half a character": b'{"format": "\xc3',
        "surrogates": b'{"format": "topompi mapping", "hosts": ["\\ud800"]}',
        "one long line": b"x" * (1 << 24),
        "carriage returns": b"\r" * (1 << 20),
        "blank": b" \n\t\n",
        "blank lines": b"3 2\n" + b"\n" * (1 << 20),
        "a BOM": b"\xef\xbb\xbfSwitchName=s Nodes=n1\n",
        "pickle": b"\x80\x04\x95\x00",
    }
    from tests.fuzz.readers import READERS

    return [(name, reader, data) for name, data in texts.items() for reader in READERS]
