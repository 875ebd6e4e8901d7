"""The command line ``python -m studies SOURCE [NAME...] [-o docs/lab]``, and ``python -m studies tables``."""

from __future__ import annotations

import sys
from importlib import import_module

from .tablelist import main as list_tables

TABLES = "tables"
SOURCES = {
    "subramoni": "H. Subramoni, Topology-Aware MPI Communication and Scheduling, PhD thesis, Ohio State 2013",
    "pollard": "S. D. Pollard et al., Interference-free node allocation, SC18",
    "jokanovic": "A. Jokanovic, PhD thesis, UPC 2014",
    "interference": "no source: a month of LLNL Thunder under allocators, with jobs that slow each other on links",
    "poppa": "A. D. Breslow et al., Enabling fair pricing on HPC systems with node sharing, SC13",
    "leonardo": "real jobs of CINECA's Leonardo on a fabric of its cells and leaf switches",
    "families": "no source: allreduces in few steps with few bytes, on simulated fabrics and allocations of Leonardo",
    "coscheduling2025": "A. Tsoukleidis-Karydakis, Performance modeling for co-scheduling, NTUA 2025",
    "optimum": "no source: the least time of collectives on fabrics, and schedules of topompi and of libraries",
    "slow": "no source: allreduces with slow hosts, which stand aside, on simulated fabrics",
    "neighbours": "no source: neighbourhood collectives with a message per edge, and with carriers of hosts",
    "pico": "D. De Sensi and S. Pasqualoni, PICO, arXiv 2508.16809: measured collectives of four machines",
    "records": "no source: measured times of all algorithms in tests/records, and the cost model's choices",
    "slurm": "the thesis of subramoni, chapter 8, on a real Slurm over an emulated network; as root",
}


def main(words: list[str]) -> int:
    """Run the study of a source, or list the tables of docs/lab.

    :param words: name of the source, then the arguments of its own command.
    :returns: exit code; 2 if the source is unknown.
    """
    if words[:1] == [TABLES]:
        return list_tables(words[1:])
    if not words or words[0] not in SOURCES:
        listed = "".join(f"\n  {name:<16} {title}" for name, title in SOURCES.items())
        got = words[0] if words else "none"
        asked = got in ("-h", "--help")
        listed += f"\n  {TABLES:<16} no source: all tables of docs/lab, and those that are older than their code"
        message = f"python -m studies SOURCE [-h]; sources:{listed}"
        print(message if asked else f"studies: expecting a source, got {got}\n{message}", file=sys.stderr)
        return 0 if asked else 2
    return int(import_module(f"studies.{words[0]}.cli").main(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
