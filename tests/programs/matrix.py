"""Every operation by every algorithm, in every spelling, from every root, on every placement, against the MPI library.

``matrix.py [--seed N] [--WHICH] [--only METHOD,...] PARTITION...`` where a partition of the ranks, as ``5`` or
``3+2``, says the sizes of the communicators that work side by side. A case is one value of each factor of an operation:
algorithm, spelling, root, placement, content, length, size of the communicator, form of the call. Rules files force the
algorithms. Each call is made natively and by ours on equal data, and the memory behind them is compared byte by byte.

By default every algorithm and every spelling of an operation meets every value of every other factor; with
``--sparse`` algorithms meet all placements and roots, and spellings all lengths; with ``--sizes`` algorithms meet all
sizes; with ``--product`` all meet all. The program counts the pairs of values that it ran, and fails where one is
missing.
"""

import itertools
import json
import os
import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import defaultdict
from pathlib import Path

import numpy as np
from mpi4py import MPI
from operations import OPERATIONS, algorithms, excluded, factors, make_call

import topompi
from tests.covering import covering, pairs_of, wanted_pairs
from topompi.topology import TopologyInterface, load

os.environ["TOPOMPI_NATIVE_CALLS"] = "0"  # so that split communicators run what is chosen at once
WORLD = MPI.Intracomm(MPI.COMM_WORLD)
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
# Of 8 hosts; by default three levels, two hosts a leaf, two leaves a pod.
FABRIC = load(os.environ.get("MATRIX_FABRIC", "xgft:2,2,2;1,1,1"))
PLACEMENTS = {
    "block": [rank // 2 % 8 for rank in range(16)],
    "cyclic": [rank % 3 * 2 for rank in range(16)],
    "random": np.random.default_rng(7).integers(0, 8, 16).tolist(),
    "uneven": [0, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 6, 6, 6, 6],
    "uneven, shuffled": [7, 2, 0, 2, 7, 5, 2, 5, 2, 7, 0, 2, 5, 2, 7, 2],
    "one a host": [*range(8), *range(8)],
    "one host": [0] * 16,
}
BOTH = ("algorithm", "spec")
# By the name of an option: whether all values of one factor are to meet all values of another.
MEET = {
    "pairs": lambda one, other: one in BOTH,
    "product": lambda one, other: one in BOTH,
    "sparse": lambda *two: two in {("algorithm", "placement"), ("algorithm", "root"), ("spec", "length")},
    "sizes": lambda *two: two == ("algorithm", "size"),
}


def cases_of(operation, options, sizes):
    """The cases of an operation, and the pairs of values that they are to have."""
    choices = factors(operation, list(PLACEMENTS), sizes)
    meet = MEET[options.meet]

    def cannot_meet(both):
        return excluded(operation, both)

    wanted = wanted_pairs(choices, cannot_meet, meet)
    if options.meet != "product":
        cases = list(covering(choices, cannot_meet, meet, random.Random(options.seed)))
        if options.meet in ("pairs", "sparse"):
            cases += plain_cases(choices)
        return cases, wanted
    every = (dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values()))
    return [
        case
        for case in every
        if not any(cannot_meet({a: case[a], b: case[b]}) for a, b in itertools.combinations(case, 2))
    ], wanted


def plain_cases(choices):
    """Each algorithm where it can run if it can at all: with something to send, between hosts, on three ranks or more.

    What is drawn may all fall to cases that an algorithm leaves to the library: of nothing, on one host, of odd sizes.
    The two largest sizes are all ranks, and some beside other communicators, which some schedules are for.
    """
    first = {name: values[0] for name, values in choices.items()}
    length = choices["length"][min(2, len(choices["length"]) - 1)]
    sizes = [size for size in choices["size"] if size > 2][-2:]
    for algorithm, size, form in itertools.product(choices["algorithm"], sizes, choices["form"][:2]):
        yield {**first, "placement": "cyclic", "length": length, "algorithm": algorithm, "size": size, "form": form}


def write_rules(folder):
    """Rules files: the one of number n forces the n-th algorithm of each operation that has so many."""
    columns = {one.method: algorithms(one) for one in OPERATIONS}
    for number in range(max(map(len, columns.values()))):
        rules = [
            {"methods": method, "algorithm": names[number]}
            for method, names in columns.items()
            if number < len(names) and len(names) > 1
        ]
        text = json.dumps({"format": "topompi rules", "version": 1, "rules": rules})
        Path(folder, f"{number}.json").write_text(text)


def run_case(native, ours, operation, case, seed):
    """What differs, by name: of a first call and of one like it, or of two starts of a persistent one."""
    wanted = make_call(operation, case, native.Get_rank(), seed)
    getattr(native, operation.method)(*wanted.arguments)
    wrong, form = [], case["form"]
    if form == "persistent":
        call = make_call(operation, case, native.Get_rank(), seed)
        before = call.memory.copy()
        request = getattr(ours, f"{operation.method}_init")(*call.arguments)
        for start in ("first start", "second start"):
            if call.memory.flags.writeable:
                call.memory[:] = before
            request.Start()
            request.Wait()
            wrong += [start] * (call.seen() != wanted.seen())
        request.Free()
        call.speller.free()
    else:
        blocking = form == "blocking"
        for turn in ("first", "second") if blocking else ("only",):
            call = make_call(operation, case, native.Get_rank(), seed)
            if blocking:
                getattr(ours, operation.method)(*call.arguments)
            else:
                getattr(ours, f"I{operation.method.lower()}")(*call.arguments).Wait()
            wrong += [turn] * (call.seen() != wanted.seen())
            call.speller.free()
    wanted.speller.free()
    return wrong


def run_part(part, cases, folder, seed):
    """Run the cases of this rank's part of the ranks; returns what failed, and the cases that ran by operation.

    Ours is split off a communicator of all ranks, beside those of the other parts: some schedules are for such only.
    """
    failures, ran = [], defaultdict(list)
    native = WORLD.Split(part, RANK)
    size = native.Get_size()
    groups = {placement: defaultdict(list) for placement in PLACEMENTS}
    for number, (operation, case) in enumerate(cases):
        groups[case["placement"]][algorithms(operation).index(case["algorithm"])].append((number, operation, case))
    for placement, columns in groups.items():
        hosts = [FABRIC.fabric.hosts[host] for host in PLACEMENTS[placement][:SIZE]]
        interface = TopologyInterface.place(hosts, FABRIC.routes, virtual=True)
        for column, some in sorted(columns.items()):
            os.environ["TOPOMPI_RULES"] = f"{folder}/{column}.json"
            whole = topompi.Intracomm(WORLD.Dup(), interface)
            ours = whole.Split(part, RANK)
            for number, operation, case in some:
                if case["size"] == size:
                    wrong = run_case(native, ours, operation, case, [seed, number])
                    ran[operation.method].append(case)
                    if wrong:
                        failures.append(f"rank {native.Get_rank()} of {size}: {operation.method}, {case}: {wrong}")
            ours.Free()
            whole.Free()
    native.Free()
    return failures, ran


def wait_for_all():
    """A barrier at which those who are early leave the processor to the others."""
    request = WORLD.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


def arguments():
    """The options, alike on all ranks."""
    parser = ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    for name in MEET:
        parser.add_argument(f"--{name}", dest="meet", action="store_const", const=name, default="pairs")
    parser.add_argument("--only", default="")
    parser.add_argument("partitions", nargs="+")
    return parser.parse_args()


def main():
    options = arguments()
    partitions = [[int(size) for size in one.split("+")] for one in options.partitions]
    sizes = sorted({size for partition in partitions for size in partition})
    chosen = [one for one in OPERATIONS if not options.only or one.method in options.only.split(",")]
    folder = WORLD.bcast(tempfile.mkdtemp() if RANK == 0 else None)
    plan = None
    if RANK == 0:
        write_rules(folder)
        plan = [cases_of(operation, options, sizes) for operation in chosen]
    cases = WORLD.bcast(plan and [[*some] for some, _ in plan])
    listed = [(operation, case) for operation, some in zip(chosen, cases, strict=True) for case in some]
    os.environ["TOPOMPI_TUNE"] = "off"
    failures, ran = [], defaultdict(list)
    for partition in partitions:
        assert sum(partition) == SIZE, partition
        part = int(np.searchsorted(np.cumsum(partition), RANK, side="right"))
        wrong, done = run_part(part, listed, folder, options.seed)
        failures += wrong
        for method, some in done.items():
            ran[method] += some
        wait_for_all()
    everyone = WORLD.gather((failures, ran))
    status = 0
    if RANK == 0:
        found = [failure for of_rank, _ in everyone for failure in of_rank]
        print("\n".join(found[:20]))
        for one in chosen:
            print("columns", one.method, one.collective, *algorithms(one))
        covered = defaultdict(set)
        for _, of_rank in everyone:
            for method, some in of_rank.items():
                covered[method].update(*map(pairs_of, some))
        wanted = {one.method: pairs for one, (_, pairs) in zip(chosen, plan, strict=True)}
        missing = [(method, sorted(one)) for method, pairs in wanted.items() for one in pairs - covered[method]]
        print(f"{len(missing)} of {sum(map(len, wanted.values()))} pairs not covered {missing[:5]}")
        print(f"{len(listed)} cases on {SIZE} ranks, {len(found)} failures", flush=True)
        for path in Path(folder).iterdir():
            path.unlink()
        Path(folder).rmdir()
        status = bool(found or missing)
    sys.exit(WORLD.bcast(status))


if __name__ == "__main__":
    main()
