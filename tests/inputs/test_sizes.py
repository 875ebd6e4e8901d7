"""Sizes with units: every reader takes the same spellings for the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.emulate.spec import parse_rate
from osu_like_bench.options import message_sizes
from topompi.cli.quantities import parse_bytes
from topompi.errors import TopompiError
from topompi.inputs.limits import parse_limits
from topompi.inputs.sizes import size_in, unit_bytes
from topompi.machine.interference.specs import read_jobs
from topompi.mapping.readers.text import GraphFile
from topompi.mpi.selection.rules import Rules
from topompi.schedules.segments import cut

RULES = '{"format": "topompi rules", "version": 1, "rules": [{"bytes": "%s", "algorithm": "native"}]}'
READERS = {
    "command line": lambda text: parse_bytes(text, "--bytes", TopompiError),
    "osu_like_bench": lambda text: message_sizes(text + ":" + text, 1)[0],
    "limits": lambda text: parse_limits(f"bytes={text}")["bytes"],
    "algorithm": lambda text: cut(f"ring/{text}")[1],
    "rules": lambda text: Rules.parse(RULES % text).rules[0].nbytes[0],
    "graph": lambda text: GraphFile("f", b"").volume(1, text),
    "kernel": lambda text: int(read_jobs([f"alltoall@ranks=2,size={text}"])[0].graph.volume[0]),
}
SPELLINGS = ["{}", "{}B", "{}i", "{}iB"]


@st.composite
def sizes(draw: st.DrawFn) -> tuple[str, int]:
    """A size as users write it, and its bytes."""
    number, power = draw(st.integers(1, 999)), draw(st.integers(0, 2))
    unit = draw(st.sampled_from(SPELLINGS)).format("KM"[power - 1]) if power else draw(st.sampled_from(["", "B"]))
    cased = "".join(letter.lower() if draw(st.booleans()) else letter.upper() for letter in unit)
    return f"{number}{cased}", number << 10 * power


@given(sizes())
def test_all_readers_take_every_spelling_of_a_size(size):
    text, nbytes = size
    assert {name: read(text) for name, read in READERS.items()} == dict.fromkeys(READERS, nbytes)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["64X", "64KK", "K", "64Kbit", "-1", "9" * 18 + "T", "6\N{ARABIC-INDIC DIGIT FOUR}"])
def test_all_readers_refuse_what_is_no_size(reader, text):
    with pytest.raises((TopompiError, ValueError), match="expecting"):
        READERS[reader](text)


def test_a_unit_is_a_power_of_1024():
    assert [unit_bytes(one) for one in ("", "bytes", "k", "MiB", "Gb", "Ti")] == [1, 1, *(1024**n for n in range(1, 5))]
    assert unit_bytes("\N{KELVIN SIGN}") is None
    assert (size_in(" 64 KiB "), size_in("0"), size_in("1.5K")) == (65536, 0, None)


def test_rates_in_bits_are_decimal():
    assert [parse_rate(text, "--rate") * 8 for text in ("64k", "64K", "1M", "1Mbit/s")] == [64e3, 64e3, 1e6, 1e6]
    with pytest.raises(TopompiError, match="expecting bits/s"):
        parse_rate("64Ki", "--rate")
