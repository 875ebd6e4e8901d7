"""Readers of programs that share nodes, of the shutter, of prices, of traces and of words of commands; their seeds."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.colocation.profiles.test_profiles import CSV, MPIP, TEXT
from topompi.cli.colocate.inputs import read_knowledge
from topompi.cli.colocate.measure import _programs, _runs_so_far
from topompi.cli.colocate.profile import _collected, _events
from topompi.cli.jobs.price import _runs
from topompi.cli.slurm.select import _idle_nodes
from topompi.inputs import in_words
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.estimates.records import groups_of, read_records
from topompi.machine.colocation.measuring.plan import MeasuredProgram
from topompi.machine.colocation.prices.accounts import Ledger
from topompi.machine.colocation.prices.reports import to_csv, to_html, to_json
from topompi.machine.colocation.profiles.files import read_system
from topompi.machine.colocation.profiles.perf import EVENTS
from topompi.machine.colocation.speedups.files import read_speedups, write_speedups
from topompi.machine.interference.traces.reading import read_trace
from topompi.machine.shutter.wanted import JobTargets
from topompi.machine.slurm.page.events import events
from topompi.machine.slurm.page.live import last_lines
from topompi.mpi.profile import Profile, read_profile, write_profile
from topompi.mpi.profile.recording import RankRows
from topompi.topology.sources import is_input
from topompi.topology.writers.slurmtree import node_names

__all__ = ["READERS", "seeds"]


def ledger(path: Path) -> None:
    path.chmod(0o600)
    with Ledger(path) as found:
        for report in (to_csv, to_json, to_html):
            report(found)


def records(path: Path) -> None:
    found = read_records(path)
    for job in found.jobs[:3]:
        groups_of(found, job)


def speedups(path: Path) -> None:
    write_speedups(path.with_name("again"), read_speedups(path))


def report(path: Path) -> None:
    _collected([path], "a", 4, 2, 10.0, None)


def profile(path: Path) -> None:
    found = read_profile(path)
    assert found.size >= 0


def end_of_log(path: Path) -> None:
    lines, _ = last_lines(path)
    events(lines or [], 2_000_000_000)


def any_file(path: Path) -> None:
    is_input(str(path))
    in_words(ColocationError(f"{path}: expecting a file, got another"))


def journal(path: Path) -> None:
    _runs_so_far(path, [MeasuredProgram("a", ("true",))], [[0], [1]])


_LOG = '{"format": "topompi shutter log", "version": 1}\n'
_LOG += "".join(
    f'["{region}", "a", 0, {at}.5, {at + 1}.0, 7]\n' for at, region in enumerate(("before", "during", "after"))
)
_CELLS = '{"format": "topompi speedups", "version": 1, "programs": [{"name": "a"}, {"name": "b"}], "cells": ['
_CELLS += '{"program": "a", "beside": "b", "speedup": 0.9, "interval": [0.8, 0.95]}]}\n'
_PROFILES = '{"format": "topompi program profiles", "version": 1, "programs": [{"program": "a", "processes": 4}]}\n'
_SYSTEM = {
    "format": "topompi system",
    "version": 1,
    "name": "m",
    "flops": 1e12,
    "memory": 1e11,
    "hits": 1e9,
    "misses": 1e8,
}
_GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}\n"
_GOAL += "rank 1 {\nl1: recv 8b from 0 tag 3\nl2: calc 5\nl2 requires l1\n}\n"
_SIMGRID = "0 init\n1 init\n0 alltoall 4 4\n1 alltoall 4 4\n0 send 1 0 8\n1 recv 0 0 8\n0 finalize\n1 finalize\n"

READERS: dict[str, Callable[[Path], object]] = {
    "ledger": ledger,
    "runs": lambda path: _runs(path, 4, None),
    "jobs of the shutter": lambda path: JobTargets([], path)(),
    "records": records,
    "speed-ups": speedups,
    "system": read_system,
    "knowledge": lambda path: read_knowledge([path], None),
    "report": report,
    "profile": profile,
    "journal": journal,
    "trace": read_trace,
    "programs": lambda path: _programs([str(path)]),
    "events": _events,
    "idle nodes": lambda path: _idle_nodes(str(path), None),
    "node names": lambda path: node_names(str(path)),
    "end of a log": end_of_log,
    "any file": any_file,
}


def _of_ledger() -> bytes:
    with TemporaryDirectory() as folder:
        with Ledger(Path(folder, "f")) as made:
            made.grant("g", "p", 100.0)
        return Path(folder, "f").read_bytes()


def _of_profile() -> bytes:
    with TemporaryDirectory() as folder:
        write_profile(Profile(1, "by hand", of_rank=[RankRows.of_rows(0, [])]), Path(folder, "f"))
        return Path(folder, "f").read_bytes()


def seeds() -> list[tuple[str, bytes]]:
    """Reader and content of sound inputs."""
    texts = {
        "runs": ("job,seconds,cores,project,user\n1,10.5,4,p,u\n2,3,8,p,v\n",),
        "jobs of the shutter": ("# jobs\na=pid:77\nb=pgid:78\n",),
        "records": (_LOG,),
        "speed-ups": (
            _CELLS,
            ",a,b\na,0.9,0.8\nb,0.7,0.95\n",
            "application,processes,beside,group,seconds\na,4,compact,1,10\na,4,b,1,12\n",
        ),
        "system": (json.dumps(_SYSTEM),),
        "knowledge": (_PROFILES, _CELLS),
        "report": (TEXT, CSV, MPIP, _PROFILES),
        "journal": ('{"format": "topompi runs of pairs", "version": 1, "cores": [[0], [1]]}\n',),
        "trace": (_GOAL, _SIMGRID),
        "programs": ("# two\na=true 1\nb=true 2\n",),
        "events": (json.dumps({"LLC_REFERENCES": next(iter(EVENTS.values()))}),),
        "idle nodes": ("n[1-2] idle\nn3 mixed\n",),
        "node names": ("h1 n1 # one\nh2 n2\n",),
        "end of a log": ('{"time": "2026-11-28T20:00:00+00:00", "level": "info", "event": "placed", "job": "7"}\n',),
        "any file": ("SwitchName=s Nodes=n[1-4]\n",),
    }
    made = [(reader, text.encode()) for reader, some in texts.items() for text in some]
    return [*made, ("ledger", _of_ledger()), ("profile", _of_profile())]
