"""Workloads: what readers take, refuse, and say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from topompi.errors import TopompiError
from topompi.jobs import (
    read_swf,
)


def refusal(read) -> str | None:
    """The message of the error of ours that a reader raises; none where it reads. Any other error passes on."""
    try:
        read()
    except TopompiError as error:
        return str(error)
    return None


def test_mutated_logs_raise_only_our_errors(tmp_path: Path):
    line = "1 0 -1 34616 472 -1 -1 156 -1 -1 0 16 -1 64 -1 1 -1 -1\n"
    whole = ("; Version: 2.2\n" + line * 8).encode()
    rng = random.Random(1)
    for _ in range(700):
        text = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = bytes(
                rng.choices(b"0123456789.-eE \n;x\x00\xffinf", k=rng.randint(0, 3))
            )
        (tmp_path / "log").write_bytes(text)
        for partial in (False, True):
            message = refusal(lambda partial=partial: read_swf(tmp_path / "log", 4, partial))
            assert message is None or str(tmp_path / "log") in message


def test_a_wrong_field_is_named_with_its_line(tmp_path: Path):
    (tmp_path / "log").write_text("; head\n1 0 -1 x 4 -1 -1 4 -1 -1 0 16 -1 64 -1 1 -1 -1\n")
    with pytest.raises(TopompiError, match=r"line 2: field 4 \(run time\): expecting a whole number .*, got 'x'"):
        read_swf(tmp_path / "log")
    assert len(read_swf(tmp_path / "log", partial=True).reading.problems) == 1
