"""Mutations of inputs: of bytes, lines, numbers and names, and of what they are packed in."""

import gzip
import io
import lzma
import re
import tarfile
from random import Random

__all__ = ["DIGITS", "mutate"]

_NUMBERS = (b"0", b"-1", b"255", b"256", b"65536", b"2147483647", b"2147483648", b"9223372036854775808", b"1e999")
_LONG = (b"1" + b"0" * 400, b"9" * 5000, b"nan", b"0x" + b"f" * 40, b"1.5", b"\xd9\xa3", b"1-99999999", b"null", b"[]")
_PLANTED = (
    b"[bold]x[/foo]",
    b"[/]",
    b"[link=http://h]y",
    b":smile:",
    b"\x1b]52;c;aGk=\x07",
    b"\x1b[2J",
    b"\xc2\x9b1m",
    b"\x7f",
)
_PLANTED += (
    b"=1+1",
    b"@x",
    b"-x",
    b"$\\frac",
    b"</title><script>",
    b"]]>",
    b"\xe2\x80\xae",
    b"\xef\xbf\xbe",
    b"../../victim",
    b"/dev/stdout",
)
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_.-]*")
DIGITS = re.compile(rb"[0-9]+")


def mutate(data: bytes, random: Random) -> bytes:
    """A damaged copy, in one time of eight packed and damaged again."""
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        data = random.choice((_bytes, _lines, _lines, _number, _number, _number, _cut, _name, _name))(data, random)
    if random.random() < 0.125:
        data = random.choice((lzma.compress, gzip.compress, _tar))(data)
        if random.random() < 0.8:
            data = random.choice((_bytes, _cut))(data, random)
    return data


def _bytes(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    new = random.choice((bytes([random.randrange(256)]), b"", b"\x00", b"\xff", b"\r", b'"', b"[", b"{", b" " * 300))
    return data[:at] + new + data[at + random.choice((0, 1, 1, 7)) :]


def _lines(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    choice = random.randrange(5)
    if choice == 0:
        del lines[first]
    elif choice == 1:
        lines[first], lines[second] = lines[second], lines[first]
    elif choice == 2:
        lines[first : first + 1] = [lines[first]] * random.choice((2, 3, 50))
    elif choice == 3:
        lines[first] = lines[first][: random.randrange(len(lines[first]) + 1)]
    else:
        words = lines[first].split()
        random.shuffle(words)
        lines[first] = b" ".join(words)
    return b"\n".join(lines)


def _number(data: bytes, random: Random) -> bytes:
    found = list(DIGITS.finditer(data[: 1 << 16]))
    if not found:
        return _bytes(data, random)
    match = random.choice(found)
    return data[: match.start()] + random.choice(_NUMBERS + _LONG) + data[match.end() :]


def _name(data: bytes, random: Random) -> bytes:
    """Markup, control characters, formulas and paths in, or in place of, a name wherever that stands."""
    found = list(_NAME.finditer(data[: 1 << 16]))
    if not found:
        return _bytes(data, random)
    match = random.choice(found)
    new = random.choice(_PLANTED)
    if random.random() < 0.5:  # or everywhere, so that what names what still fits
        return data.replace(match[0], new if random.random() < 0.5 else match[0] + new)
    return data[: match.end()] + new + data[match.end() :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _tar(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{'xz' if len(data) % 2 else ''}") as archive:
        for name in ("a", "b/c"):
            member = tarfile.TarInfo(name)
            member.size = len(data) if name == "a" else 0
            archive.addfile(member, io.BytesIO(data[: member.size]))
    return packed.getvalue()
