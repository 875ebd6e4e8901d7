"""A recorder of the main job's fabric, with ibsim and OpenSM: ``python -m tests.record_fabric``.

It writes osu_like_bench/fabrics/fattree64.ibnetdiscover.xz and fattree64.lfts.xz, and describes their origin in the
README there. Equal versions of the tools make equal files, except for the date in ibnetdiscover's report.
"""

import lzma
import sys
from pathlib import Path

from tests.ibsim import missing_tools, serve, tool_versions
from topompi.topology.synthetic import from_spec
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

SPEC = "XGFT(3; 4,4,4; 1,2,2)"
NAME = "fattree64"
DIRECTORY = Path(__file__).resolve().parents[1] / "osu_like_bench" / "fabrics"

README = """\
# Recorded fabrics

`{name}.ibnetdiscover.xz` and `{name}.lfts.xz`: a synthetic fat tree of {hosts} hosts and {switches} switches,
{spec}: four hosts a leaf switch with two up-links (2:1), four leaves a group, four groups; 1, 3 or
5 switches between two hosts. The fabric is this project's own, made up; its forwarding tables are what OpenSM
computed for it.

How they were recorded, and are recorded again:

    python -m tests.record_fabric

1. `topompi.topology.synthetic` makes the fabric, `topompi.topology.writers.ibnetdiscover` writes it as a report, and
   `ibsim` serves it;
2. `opensm -o` (engine minhop, its default; LMC 0) routes it and dumps its tables: `{name}.lfts.xz`;
3. `ibnetdiscover` reports the fabric afterwards, with the tables' LIDs: `{name}.ibnetdiscover.xz`.

Debian packages: {packages}.
Apart from the date in the report, the same versions make the same files.
"""


def main() -> int:
    """Record; 1 where the tools are missing."""
    missing = missing_tools()
    if missing:
        print(f"cannot record: {missing}", file=sys.stderr)
        return 1
    fabric = from_spec(SPEC)
    with serve(write_ibnetdiscover(fabric)) as simulation:
        tables = simulation.route().read_bytes()
        report = simulation.discover().read_bytes()
    DIRECTORY.mkdir(exist_ok=True)
    for kind, content in (("ibnetdiscover", report), ("lfts", tables)):
        path = DIRECTORY / f"{NAME}.{kind}.xz"
        path.write_bytes(lzma.compress(content, preset=9))
        print(f"{path.name}: {path.stat().st_size} bytes, {len(content)} unpacked")
    packages = ", ".join(f"{package} {version}" for package, version in tool_versions().items())
    facts = {"hosts": fabric.num_hosts, "switches": fabric.num_switches, "spec": SPEC, "packages": packages}
    (DIRECTORY / "README.md").write_text(README.format(name=NAME, **facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
