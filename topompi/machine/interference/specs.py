"""Jobs as users name them: ``[NAME=]WHAT[@KEY=VALUE,...]``, where WHAT is a trace's file or a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...inputs.pairs import read_pairs
from ...inputs.sizes import size_in
from ...mapping.graph import CommunicationGraph
from ...netsim import Program
from ...netsim.packets.settings import MOST_LANES
from . import crossbar
from .errors import InterferenceError
from .kernels import KERNELS, make_kernel, trace_of
from .network import SharedNetwork
from .placement import Nodes, mapping
from .traces import Trace, read_trace

__all__ = ["NO_TIMES", "JobSpec", "read_jobs"]

_OPTION = r"[a-z_]+(?:=[^,@]*)?"
_SPEC = re.compile(rf"(?:(?P<name>\w[\w.-]*)=)?(?P<what>.+?)(?:@(?P<options>{_OPTION}(?:,{_OPTION})*))?")
_REAL = re.compile(r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?")
JOB_KEYS = ("copies", "ppn", "speed", "lane", "start", "base")
KERNEL_KEYS = ("ranks", "grid", "periodic", "faces", "size", "iterations", "burst")
TRACE_KEYS = ("flops", "unit", "iterations", "burst", "columns")
NO_TIMES = "no times of computation: add burst=S, seconds for which each rank computes (0 if the job only sends)"


@dataclass(frozen=True, eq=False)
class JobSpec:
    """A job: its trace, and how it runs.

    :param name: name of the job.
    :param trace: messages and bursts of its ranks.
    :param ppn: number of consecutive ranks on each node.
    :param speed: speed of the processors relative to the recorded machine.
    :param lane: virtual lane of the messages.
    :param start: time at which the job begins, in seconds.
    :param base: T_base, the job's time on a crossbar in seconds, if it is known; else None.
    :param timed: whether the seconds for which its ranks compute are known, so that its load per second is.
    """

    name: str
    trace: Trace
    ppn: int = 1
    speed: float = 1.0
    lane: int = 0
    start: float = 0.0
    base: float | None = None
    timed: bool = True

    @property
    def nodes(self) -> int:
        """Number of nodes that the job needs."""
        return self.trace.size // self.ppn

    @property
    def notes(self) -> tuple[str, ...]:
        """Oddities of the job, one sentence each."""
        return self.trace.notes if self.timed else (*self.trace.notes, f"it only sends: {NO_TIMES}")

    @cached_property
    def graph(self) -> CommunicationGraph:
        """The bytes that the ranks send to each other in one run."""
        return crossbar.graph_of(self.trace.ranks)

    def computing(self, network: SharedNetwork) -> JobSpec:
        """The job with bursts; those of a recorded run are its seconds less the least seconds of its bytes.

        :param network: network on whose slowest host link, as on the recorded machine's, the bytes take their time.
        """
        if not self.trace.recorded:
            return self
        hosts, rate = mapping(np.arange(self.nodes), self.trace.size), network.tables.rate[network.tables.uplink].min()
        rest = self.trace.recorded - crossbar.bound(self.graph, float(rate), hosts)
        return replace(self, trace=self.trace.computing(max(rest, 0.0)))

    def on_crossbar(self, network: SharedNetwork, nodes: Nodes) -> tuple[float | None, str]:
        """T_base in seconds, and its origin in words: given, simulated, or the least time of a job without an order.

        It is None if the job has no times of computation.

        :param network: network of the nodes.
        :param nodes: nodes of the job in the order of its ranks, shape (nodes,).
        Cost: a simulation, if the messages have an order.
        """
        if self.base is not None:
            return self.base, "given"
        if not self.timed:
            return None, f"{NO_TIMES}, or base=S, seconds of a run alone on one switch"
        program = self.computing(network).on(nodes)
        if self.trace.ordered:
            return network.base_seconds(program), f"simulated: {network.model} on a crossbar"
        compute, rates = crossbar.computation(program), network.tables.rate[network.tables.uplink]
        least = crossbar.bound(self.graph, float(rates[network.tables.adapters[0][nodes]].min()), program.hosts)
        return compute + least, f"least time: {compute:.4g} s of computation, then all bytes"

    def on(self, nodes: Nodes) -> Program:
        """Place the job; a recorded run without bursts has them only after ``computing``.

        :param nodes: its nodes in the order of its ranks, shape (nodes,).
        """
        hosts = mapping(nodes, self.trace.size)
        return self.trace.on(hosts, self.speed, name=self.name, lane=self.lane, start=self.start)


def read_jobs(texts: Sequence[str], *, partial: bool = False) -> list[JobSpec]:
    """Read jobs, each once; ``copies=N`` makes N jobs ``NAME-1`` to ``NAME-N``.

    :param texts: specification of each job.
    :param partial: whether wrong lines of traces are skipped and counted.
    :raises InterferenceError: if a specification is malformed, or two jobs have one name.
    """
    found = [job for text in texts for job in _jobs(text, partial)]
    names = [job.name for job in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InterferenceError(f"jobs: expecting different names, got {twice} twice; NAME=... before a job names it")
    return found


def _jobs(text: str, partial: bool) -> Iterator[JobSpec]:
    match = _SPEC.fullmatch(text)
    if match is None:
        raise InterferenceError(f"job: expecting [NAME=]WHAT[@KEY=VALUE,...], got {text!r}")
    what, options = match["what"], _Options(text, match["options"] or "")
    kernel = what in KERNELS
    options.require((*JOB_KEYS, *(KERNEL_KEYS if kernel else TRACE_KEYS)))
    trace = _kernel(what, options) if kernel else _trace(what, options, partial)
    ppn, copies = options.whole("ppn", 1), options.whole("copies", 1)
    if trace.size % ppn:
        raise InterferenceError(f"{text}: ppn: expecting a divisor of {trace.size} ranks, got {ppn}")
    lane = options.whole("lane", 0, 0)
    if lane >= MOST_LANES:
        raise InterferenceError(f"{text}: lane: expecting a lane below {MOST_LANES}, got {lane}")
    name = match["name"] or what.rstrip("/").rpartition("/")[2]
    speed, start = options.real("speed", 1.0, positive=True), options.real("start", 0.0)
    base = options.real("base", 0.0, positive=True) if options.text("base") else None
    timed = kernel or bool(options.text("burst")) or trace.recorded > 0 or crossbar.computation(trace.ranks) > 0
    job = JobSpec(name, trace, ppn, speed, lane, start, base, timed)
    yield from [job] if copies == 1 else (replace(job, name=f"{name}-{copy}") for copy in range(1, copies + 1))


def _kernel(name: str, options: _Options) -> Trace:
    grid = options.text("grid")
    if not grid and not options.text("ranks"):
        raise InterferenceError(f"{options.job}: expecting ranks or grid of the kernel, got neither")
    ranks = options.whole("ranks", 0, 1)
    for part in grid.split("x") if grid and not ranks else ():
        ranks = (ranks or 1) * (int(part) if part.isdigit() and len(part) < 8 else 0)
    faces = options.text("faces").replace("x", ",")
    made = make_kernel(name, range(ranks), grid or None, options.flag("periodic"), faces or None)
    iterations, burst = options.whole("iterations", 1), options.real("burst", made.usual_burst)
    return trace_of(made, options.size("size", made.usual_size), iterations=iterations, burst=burst)


def _trace(path: str, options: _Options, partial: bool) -> Trace:
    if not Path(path).exists():
        wanted = f"NAME=WHAT, such as {Path(path).name}=alltoall@ranks=4, or the file of a profile or trace"
        raise InterferenceError(f"{path}: no such file or directory: expecting {wanted}")
    about = {key: options.real(key, 0.0, positive=True) for key in ("flops", "unit") if options.text(key)}
    columns = [options.text("columns")] if options.text("columns") else ()
    iterations = options.whole("iterations", 1)
    burst = options.real("burst", 0.0) if options.text("burst") else None
    return read_trace(path, iterations=iterations, burst=burst, partial=partial, columns=columns, **about)


class _Options:
    """The options of a job.

    :param job: specification of the job, for errors.
    :param text: ``KEY=VALUE,...``.
    """

    def __init__(self, job: str, text: str) -> None:
        self.job = job
        given = filter(None, text.split(","))
        self._given: Mapping[str, str] = read_pairs(given, job, "KEY=VALUE,...", InterferenceError, bare=True)

    def require(self, known: Sequence[str]) -> None:
        """Raise an error if an option is unknown."""
        for key in self._given:
            if key not in known:
                raise InterferenceError(f"{self.job}: expecting options {', '.join(known)}, got {key!r}")

    def text(self, key: str) -> str:
        """The option's text; empty if it is not given."""
        return self._given.get(key, "")

    def flag(self, key: str) -> bool:
        """Whether the option is given; it takes no value."""
        if self.text(key):
            raise InterferenceError(f"{self.job}: {key}: expecting no value, got {self.text(key)!r}")
        return key in self._given

    def whole(self, key: str, default: int, least: int = 1) -> int:
        """A whole number of at least ``least``."""
        match = re.fullmatch(r"[0-9]{1,9}", self._given.get(key, str(default)))
        if match is None or (key in self._given and int(match[0]) < least):
            raise self._wrong(key, f"a whole number of at least {least}")
        return int(match[0])

    def size(self, key: str, default: int) -> int:
        """A number of bytes such as 64K."""
        if key not in self._given:
            return default
        size = size_in(self._given[key])
        if not size:
            raise self._wrong(key, "a number of bytes such as 64, 8K or 1M")
        return size

    def real(self, key: str, default: float, *, positive: bool = False) -> float:
        """A number of at least 0, or above 0 if ``positive``."""
        if key not in self._given:
            return default
        match = _REAL.fullmatch(self._given[key])
        found = float(match[0]) if match else -1.0
        if not 0 <= found < 1e18 or (positive and not found):
            raise self._wrong(key, "a number above 0" if positive else "a number of at least 0")
        return found

    def _wrong(self, key: str, wanted: str) -> InterferenceError:
        return InterferenceError(f"{self.job}: {key}: expecting {wanted}, got {self.text(key)!r}")
