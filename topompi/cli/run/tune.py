"""``topompi tune``: measurement of every algorithm of some collectives in this job, and rules that follow from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ...errors import TopompiError
from ...inputs.extensions import require_mpi
from ...inputs.writing import write_text
from ...mpi.execution.eligibility import why_not
from ...mpi.execution.specs import CALLS, NATIVE
from ...mpi.selection.classes import size_class
from ...mpi.tuning.comparison import ComparedRow, compare, is_undecided, rounds_needed, rules_of, winner
from ...mpi.tuning.record import Measured, TuneRecord
from ..inputs import AsJson, topology
from ..quantities import COUNT, parse_bytes
from ..terminal import Limit, console, overwrite

if TYPE_CHECKING:
    from mpi4py import MPI

    from ...topology import TopologyInterface

__all__ = ["TuneError", "tune"]

ROUNDS = 20  # minimum number of timed calls of each algorithm, if the user gives no number
MOST_BYTES = 1 << 29  # maximum bytes of one rank's buffers; sizes that need more are left out, to spare hosts' memory


class TuneError(TopompiError, ValueError):
    """The requested collective or algorithm cannot be tuned."""


def tune(
    collectives: Annotated[list[str], typer.Argument(metavar="COLLECTIVE...", help="Methods, such as alltoall bcast.")],
    sizes: Annotated[str, typer.Option("--bytes", "-m", help="MIN:MAX or one size, doubling; see below.")] = "1K:1M",
    rounds: Annotated[
        int | None, COUNT("--rounds", "-i", help="Timed calls of each; default 20, or as many as needed.", min=6)
    ] = None,
    algorithms: Annotated[
        str, typer.Option("--algorithm", "-a", help="Names (ring, ring/32K) or module:function, A,B; see below.")
    ] = "all",
    source: Annotated[str | None, topology("A topology source.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help="Virtual placement: a host list, in blocks.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The rules file to write.")] = None,
    record: Annotated[Path | None, typer.Option("--record", help="File for all samples, see topompi export.")] = None,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Measure every algorithm of some collectives in this job against native, and write the rules that follow.

    Run it as the job that the rules are for, for example: mpirun -n 64 python -m topompi tune alltoall -o rules.json.
    A program then takes them with TOPOMPI_RULES=rules.json.

    A size is, for bcast, the message; for gather, scatter, allgather, alltoall and alltoallv, one block, all of them
    equal; for reduce, allreduce, reduce_scatter and reduce_scatter_block, the whole vector of 4-byte numbers. The root
    is rank 0.

    Native always runs. A name such as ring stands for the algorithm with whole messages and with every cut of messages
    that may pay; ring/32K stands for that cut alone.

    All algorithms of one size run in turn, round by round; the time of a call is that of the slowest rank. The interval
    is the 95 % interval of the median ratio. A rule for another algorithm than native needs a gain of 5 %, and enough
    rounds to exclude that one of several algorithms won by chance: 6 rounds for one algorithm, 10 for 17. With fewer
    rounds, a size at which an algorithm seems faster gets no rule.
    """
    require_mpi()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    try:
        _run(world, collectives, _sizes(sizes), rounds, _names(algorithms), source, hosts, output, record, as_json)
    except TopompiError as error:  # same on all ranks; rank 0 prints it before any rank ends, as mpirun then ends all
        if "--debug" in sys.argv:
            raise
        if world.Get_rank() == 0:
            print(f"topompi: {error}", file=sys.stderr, flush=True)
        world.Barrier()
        raise typer.Exit(1) from None
    except Exception:  # perhaps on this rank alone, for which the others would wait without Abort
        import traceback

        traceback.print_exc()
        world.Abort(1)


def _run(
    world: MPI.Intracomm,
    collectives: Sequence[str],
    sizes: Sequence[int],
    rounds: int | None,
    algorithms: Sequence[str] | None,
    source: str | None,
    hosts: str | None,
    output: Path | None,
    record: Path | None,
    as_json: bool,
) -> None:
    """Run the command; collective, with the same errors on all ranks."""
    from ...mpi.communicator import Intracomm
    from ...mpi.communicator.state import state_of
    from ...mpi.tuning.measuring import contenders, measure, record_of

    if world.Get_size() < 2:
        raise TuneError("expecting at least 2 ranks: run it under mpirun, as the job that the rules are for")
    methods = [_method(name) for name in collectives]
    functions = _register_given(methods, algorithms or ())
    _require_runs(methods, algorithms or ())
    comm = Intracomm(world.Dup(), source, hosts)
    state = state_of(comm)
    _prove(functions, state.interface)
    speaker = _Speaker(world.Get_rank() == 0, as_json)
    executor, cells = state.executor, _cells(methods, sizes, world.Get_size())
    rivals = max((len(contenders(executor, *cell, algorithms)) - 1 for cell in cells), default=0)
    needed = rounds_needed(rivals)
    rounds = max(ROUNDS, needed) if rounds is None else rounds
    speaker.say(f"{state.interface.describe()}; {rounds} rounds, ratio to native above 1 is faster")
    if rounds < needed:
        speaker.warn(f"{rounds} rounds are too few to be sure that one of {rivals} rivals is faster: take -i {needed}")
    results: list[Measured] = []
    for method, nbytes in cells:
        if 2 * nbytes * world.Get_size() > MOST_BYTES:
            speaker.say(f"{method} {nbytes:,} bytes: left out, its buffers are above {MOST_BYTES >> 20} MiB")
            continue
        found = measure(executor, method, nbytes, rounds, algorithms, speaker.progress)
        results += found
        speaker.table(compare(found))
    done = record_of(state.comm, state.interface, results)
    failure = None
    if world.Get_rank() == 0:
        try:
            _finish(done, speaker, output, record, as_json)
        except OSError as error:
            failure = TuneError(f"{error.filename}: cannot be written: {error.strerror}")
    failure = world.bcast(failure)
    comm.Free()
    if failure is not None:
        raise failure


def _finish(done: TuneRecord, speaker: _Speaker, output: Path | None, record: Path | None, as_json: bool) -> None:
    """Write the rules to ``output`` and all samples to ``record``, and print at how many sizes native won."""
    for path, text in ((record, done.to_json), (output, lambda: _rules_text(done))):
        if path is not None:
            write_text(path, text())
    if as_json:
        print(done.to_json(), end="")
    speaker.summary(done, output)


def _rules_text(done: TuneRecord) -> str:
    return rules_of(done).to_json(job=done.description, library=done.library, date=done.date)


class _Speaker:
    """The output of rank 0; on other ranks, its methods print nothing.

    :param speaks: whether this is rank 0.
    :param as_json: whether only JSON and warnings are printed.
    """

    def __init__(self, speaks: bool, as_json: bool) -> None:
        self._speaks, self._tables = speaks, speaks and not as_json
        # mpirun may pass a terminal's output on to a file, so no colours and no terminal width.
        self._console = console(width=120)
        self._undecided, self._rows = 0, list[ComparedRow]()

    def warn(self, words: str) -> None:
        """Print a warning on standard error, even if only JSON is printed."""
        if self._speaks:
            print(f"topompi: {words}", file=sys.stderr, flush=True)

    def say(self, words: str) -> None:
        if self._tables:
            self._console.print(words, soft_wrap=True)

    def progress(self, words: str) -> None:
        """Show a line about the present measurement on a terminal; the next line overwrites it."""
        if self._speaks:
            overwrite(words)

    def table(self, rows: list[ComparedRow]) -> None:
        self._rows.append(winner(rows))
        self._undecided += is_undecided(rows)
        self.progress("")
        if self._tables:
            self.say(f"{rows[0].method} {rows[0].nbytes:,} bytes")
            self._console.print(_table(rows))

    def summary(self, done: TuneRecord, output: Path | None) -> None:
        native = sum(row.algorithm == NATIVE for row in self._rows) - self._undecided
        self.say(f"native is not clearly beaten at {native} of {len(self._rows)} sizes")
        if self._undecided:
            self.say(f"no rule for {self._undecided} of {len(self._rows)} sizes: too few rounds to be sure of a gain")
        if done.forced:
            words = ", ".join(f"{method} {algorithm}" for method, algorithm in done.forced.items())
            self.say(f"native was forced by the environment: {words}")
        if output is not None:
            self.say(f"rules written to {output}: TOPOMPI_RULES={output}")


def _table(rows: list[ComparedRow]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), pad_edge=True)
    table.add_column("algorithm", no_wrap=True)
    for name in ("median(us)", "ratio", "95% interval", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        ratio = ["", ""] if row.algorithm == NATIVE else [f"{row.ratio:.2f}", f"[{row.low:.2f}, {row.high:.2f}]"]
        cells = [row.algorithm, f"{1e6 * row.seconds:.2f}", *ratio, row.verdict]
        table.add_row(*cells)
    return table


def _method(name: str) -> str:
    from ...mpi.tuning.measuring import METHODS

    of_name: dict[str, str] = {method.lower(): method for method in METHODS}
    if name.lower() not in of_name:
        raise TuneError(f"expecting collectives of {', '.join(of_name)}, got {name!r}")
    return of_name[name.lower()]


def _require_runs(methods: Sequence[str], algorithms: Sequence[str]) -> None:
    """Raise an error if one of the algorithms can run none of the methods."""
    from ...mpi.tuning.measuring import candidates

    for name in algorithms:
        reasons = [why_not(method, name) for method in methods]
        if all(reasons):
            known = ", ".join(sorted({name for method in methods for name in candidates(method)}))
            wanted = f"expecting --algorithm of {known}, or a module:function"
            raise TuneError(f"{wanted}, got {name!r}: {reasons[0]}")


def _register_given(methods: Sequence[str], algorithms: Sequence[str]) -> list[tuple[str, str]]:
    """Register the functions among the algorithms, and return the pairs of a collective and a function's name.

    :param methods: names of mpi4py's methods.
    :param algorithms: names of algorithms, of which functions have the form ``module:function``.
    """
    from ...schedules.registry import ALGORITHMS, find_algorithm, register

    collectives = dict.fromkeys(CALLS[method].collective for method in methods)
    functions = [name for name in algorithms if ":" in name and not name.endswith(".json")]
    for collective, name in product(collectives, functions):
        try:
            if name not in ALGORITHMS[collective]:
                register(collective, name, find_algorithm(collective, name))
        except ValueError as error:
            raise TuneError(str(error)) from error
    return list(product(collectives, functions))


def _prove(functions: Sequence[tuple[str, str]], interface: TopologyInterface) -> None:
    """Raise an error if a user's function makes a wrong schedule on this job's network."""
    from ...schedules.registry import make
    from ...views.network import network_of

    for collective, name in functions:
        try:
            make(collective, name, network_of(interface))
        except ValueError as error:
            raise TuneError(str(error)) from error


def _cells(methods: Sequence[str], sizes: Sequence[int], ranks: int) -> list[tuple[str, int]]:
    """Return all pairs of a method and a size in bytes, which is rounded to one that the method can have."""
    from ...mpi.tuning.measuring import whole

    return list(dict.fromkeys((method, whole(method, size, ranks)) for method in methods for size in sizes))


def _names(text: str) -> list[str] | None:
    from ...schedules.registry import current_name

    names = [current_name(name) for name in text.split(",")]
    return None if text == "all" else [NATIVE, *(name for name in names if name != NATIVE)]


def _sizes(text: str) -> list[int]:
    """Parse ``MIN:MAX`` or one size, and return the sizes MIN, 2 MIN, 4 MIN, ... up to MAX in bytes."""
    low, colon, high = text.partition(":")
    first, last = (parse_bytes(word, "-m", TuneError) for word in (low, high if colon else low))
    if first > last:
        raise TuneError(f"-m: expecting MIN <= MAX, got {text!r}")
    return [first << power for power in range(size_class(last // first))]
