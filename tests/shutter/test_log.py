"""The log of the shutter: what was written is read, also after a crash at any byte."""

import json

import pytest

from tests.shutter.logs import Record, read_log
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.log import Log, Readings

RECORDS = [
    Record("before", "a", 0, 1.25, 1.5, 100),
    Record("during", "a", 0, 2.0, 2.25, 120),
    Record("after", "b", 3, 3.0, 3.5, 90, 180),
]
READINGS = [
    Readings("before", "a", 0, [(1.25, 7, None), (1.5, 107, None), None]),
    Readings("during", "a", 0, [None, (2.0, 0, None), (2.25, 120, None), None, (3.0, 130, None)]),
    Readings("after", "b", 3, [(3.0, 1, 2), (3.5, 91, 182)]),
]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "shutter.log"
    made = Log(path, {"every": 0.2})
    made.note(event="source", job="a")
    made.write(READINGS)
    made.close()
    return path


def test_records_notes_and_header_are_read_as_written(log):
    found = read_log(log)
    assert found.records == tuple(RECORDS)
    assert found.notes == ({"event": "source", "job": "a"},)
    assert found.header == {"format": "topompi shutter log", "version": 1, "every": 0.2}
    assert not found.is_torn


def test_a_record_is_one_line_with_six_fields_and_the_cycles_if_there_are_any(log):
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[2] == ["before", "a", 0, 1.25, 1.5, 100]
    assert lines[4] == ["after", "b", 3, 3.0, 3.5, 90, 180]


def test_a_log_cut_at_any_byte_gives_its_complete_lines(log, tmp_path):
    whole = log.read_bytes()
    head = whole.index(b"\n") + 1
    for length in range(head, len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        found = read_log(tmp_path / "cut")
        assert found.is_torn == (whole[length - 1 : length] != b"\n")
        assert len(found.records) + len(found.notes) == whole[head:length].count(b"\n")
        assert found.records == tuple(RECORDS[: len(found.records)])


def test_a_continued_log_loses_its_torn_line_alone(log):
    log.write_bytes(log.read_bytes()[:-5])
    again = Log(log, {"every": 0.1})
    again.write(READINGS[:1])
    again.close()
    found = read_log(log)
    assert found.records == (*RECORDS[:2], RECORDS[0])
    assert found.header["every"] == 0.2
    assert not found.is_torn


def test_a_log_that_died_in_its_header_is_begun_again(tmp_path):
    path = tmp_path / "shutter.log"
    path.write_bytes(b'{"format":"topompi shutter log","version":1')
    Log(path, {}).close()
    assert read_log(path).header["version"] == 1


@pytest.mark.parametrize("header", ["hello\n", '{"format":"x"}\n', '{"format":"topompi shutter log","version":2}\n'])
def test_another_format_or_version_is_not_continued(tmp_path, header):
    path = tmp_path / "shutter.log"
    path.write_text(header)
    with pytest.raises(ShutterError, match=r":1: expecting"):
        Log(path, {})
    assert path.read_text() == header
