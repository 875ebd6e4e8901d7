"""MPICH runs what its tuning files say: its messages are those of the schedules of the chosen algorithms."""

import json

import numpy as np
import pytest

from tests.mpi.prediction.test_mpich import network, recorded
from tests.support import mpirun
from topompi.mpi.prediction.libraries import Question
from topompi.mpi.prediction.libraries.mpich import MPICH
from topompi.mpi.prediction.libraries.mpich_forced import ALGORITHMS, forced
from topompi.mpi.prediction.librarychoices import LibraryChoice
from topompi.mpi.tuning.mpich_tables import MPICHTableError, MPICHTables, find_library, write_compositions, write_table

TABLE, COMPOSITIONS = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"


CLIQUES = {"MPIR_CVAR_CLIQUES_BY_BLOCK": "1"}


def tables():
    if "--allow-run-as-root" in mpirun():
        pytest.skip("this Python runs with Open MPI")
    try:
        return MPICHTables.read(find_library())
    except MPICHTableError as error:
        pytest.skip(str(error))


def choices_of(ranks):
    """Each algorithm of each method at a size of its own, among sizes that are left to the library."""
    question = {method: Question(method, 1 << 20, np.arange(ranks)) for method in ALGORITHMS}
    for method in ALGORITHMS:
        numbers = {number: segment for number, segment, _ in reversed(list(forced(question[method])))}
        for place, (number, segment) in enumerate([(0, 0), *sorted(numbers.items()), (0, 0)]):
            yield LibraryChoice(method, 512 * ranks << place, number, segment, "", 1.0, 1.0)


def messages(decision, call, hosts):
    """Messages and bytes from each rank to each on another host, shape (2, p, p)."""
    _, nbytes, root, _ = call
    schedule, size = decision.schedule(network(hosts), root), len(hosts)
    table, whole = np.zeros((2, size, size)), nbytes / size if decision.collective == "reduce_scatter" else nbytes
    pair = schedule.source, schedule.destination
    np.add.at(table[0], pair, 1)
    np.add.at(table[1], pair, schedule.count * (whole / schedule.blocks))
    return np.where(np.equal.outer(hosts, hosts), 0, table)


@pytest.mark.parametrize(("ranks", "hosts", "of"), [(8, 8, 8), (7, 7, 7), (8, 4, 8), (8, 8, 9)])
def test_mpich_runs_the_algorithms_that_the_files_say(ranks, hosts, of, tmp_path):
    """The last case has a file for another number of ranks: MPICH chooses by its own rules."""
    found, chosen = tables(), list(choices_of(ranks))
    (tmp_path / "table.json").write_text(write_table(found, chosen, of))
    (tmp_path / "over.json").write_text(write_compositions(found, chosen, of))
    calls = [
        (one.method, one.nbytes, root, True) for one in chosen for root in ((0, 3) if one.method == "Bcast" else (0,))
    ]
    host = np.repeat(np.arange(hosts), ranks // hosts)
    where = {"MPIR_CVAR_NOLOCAL": "1"} if ranks == hosts else CLIQUES | {"MPIR_CVAR_NUM_CLIQUES": str(hosts)}
    files = {TABLE: str(tmp_path / "table.json"), COMPOSITIONS: str(tmp_path / "over.json")}
    sent = recorded(calls, ranks, tmp_path, **where, **files)
    by_size = {(one.method, one.nbytes): one for one in chosen}
    for call, table in zip(calls, sent, strict=True):
        one, question = by_size[call[:2]], Question(call[0], call[1], host, item=8)
        decision = MPICH().decide(question)
        if one.number and of == ranks:
            decision = next(d for number, size, d in forced(question) if (number, size) == (one.number, one.segment))
        apart = ~np.equal.outer(host, host)
        assert np.allclose(messages(decision, call, host), table * apart), (call, one.number)
    assert json.loads((tmp_path / "table.json").read_text()) != found.algorithms
