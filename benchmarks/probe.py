"""The probe on known trees: emulated networks of random shapes, and models of larger ones.

    python -m benchmarks.probe --shapes 20 --json probe.json

The shapes need root. The models are fat trees with the round trips of hosts on Ethernet, with noise; they report the
number of probes, and the time that these would take with one rank per host.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions
from topompi.errors import TopompiError
from topompi.mpi.probe import search
from topompi.topology import Fabric, load

from .probe_model import ModelNetwork

SECONDS = 20.0  # of one probe
MODELS = {64: "XGFT(2; 8,8; 1,4)", 256: "XGFT(3; 16,4,4; 1,8,4)"}


def random_shape(seed: int, most: int = 16) -> str:
    """Draw a spec of an emulated tree of at most ``most`` hosts, with several leaves, one with several hosts."""
    generator = np.random.default_rng(seed)
    while True:
        groups = [generator.integers(1, 6, generator.integers(1, 5)).tolist() for _ in range(generator.integers(1, 4))]
        sizes = [size for group in groups for size in group]
        if sum(sizes) <= most and len(sizes) > 1 and max(sizes) > 1:
            return ";".join(",".join(map(str, group)) for group in groups)


def leaves_of(fabric: Fabric) -> set[frozenset[str]]:
    """Return the hosts of each leaf switch."""
    leaf = fabric.adapter_leaf[[int(adapters[0]) for adapters in fabric.host_adapters]]
    return {frozenset(np.array(fabric.hosts)[leaf == one].tolist()) for one in np.unique(leaf)}


def probed(
    spec: str,
    seconds: float = SECONDS,
    python: str = sys.executable,
    *words: str,
    mpi: str | None = "openmpi-polling",
) -> dict[str, Any]:
    """Probe an emulated network; in the result, ``right`` is whether the found leaves are those of the network."""
    with tempfile.TemporaryDirectory() as folder, Emulated(spec) as network:
        path = Path(folder) / "fabric.json"
        command = ["-m", "topompi", "probe", "--json", "--seconds", str(seconds), "-o", str(path), *words]
        options = LaunchOptions(mpi=mpi, timeout=seconds + 60, python=python)
        done = network.run(command, options)
        if done.returncode:
            return {"spec": spec, "right": False, "error": done.stderr[-2000:]}
        found = load(path).fabric
        right = leaves_of(found) == leaves_of(network.fabric)
        return {"spec": spec, "right": right, **json.loads(done.stdout)}


def modelled(hosts: int, noise: float, seed: int) -> dict[str, Any]:
    """Search a model; return the result, and the seconds that its probes would have taken."""
    fabric = load(MODELS[hosts]).fabric
    network = ModelNetwork(fabric, noise=noise, seed=seed)
    begin = time.perf_counter()
    found = search(fabric.num_hosts, network)
    names = np.array(fabric.hosts)
    leaf = found.levels[0].cluster
    leaves = {frozenset(names[leaf == one].tolist()) for one in range(int(leaf.max()) + 1)}
    return {
        "hosts": hosts,
        "noise": noise,
        "right": leaves == leaves_of(fabric),
        "levels": [level.num_clusters for level in found.levels],
        "rounds": found.rounds,
        "probes": found.probes,
        "seconds": network.elapsed,
        "thinking": time.perf_counter() - begin,
    }


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the results of all selected shapes and models."""
    for hosts in MODELS:
        for noise in (0.05, 0.2, 0.5):
            yield modelled(hosts, noise, arguments.seed)
    for seed in range(arguments.seed, arguments.seed + arguments.shapes):
        yield {"seed": seed, **probed(random_shape(seed), arguments.seconds)}
    for spec in arguments.specs:
        yield probed(spec, arguments.seconds)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", help="emulated networks to probe too, such as 4x8")
    parser.add_argument("--shapes", type=int, default=4, help="random emulated networks")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each probe")
    parser.add_argument("--json", type=Path, help="file for all rows")
    arguments = parser.parse_args(words)
    found = []
    try:
        for row in rows(arguments):
            found.append(row)
            print(json.dumps(row), flush=True)
    except TopompiError as error:
        print(f"benchmarks.probe: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    wrong = sum(not row["right"] for row in found)
    print(f"{len(found) - wrong} of {len(found)} right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
