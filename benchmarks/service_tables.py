"""A synthetic fabric in the files of a real one: ``python -m benchmarks.service_tables stampede FOLDER``.

It writes ``report`` in the format of ibnetdiscover, and ``opensm-lfts.dump`` in the format of OpenSM, with routes
computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from topompi.topology import Routes, load
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover


def dump(routes: Routes) -> Iterator[str]:
    """Yield the lines of each switch's table, with the LIDs of the report: switches from 1 on, then adapters."""
    fabric = routes.fabric
    names = [f"Switch portguid {guid}: 'switch'" for guid in fabric.switch_ids]
    names += [f"Channel Adapter portguid {guid}: 'adapter'" for guid in fabric.adapter_ids]
    top = len(names)
    for switch, guid in enumerate(fabric.switch_ids):
        yield f"Unicast lids [0-{top}] of switch Lid {switch + 1} guid {guid} ('switch'):"
        yield f"0x{switch + 1:04x} 000 # {names[switch]}"
        ports = fabric.link_source_port[routes.next_link[0, switch]].tolist()
        for lid, port in enumerate(ports, fabric.num_switches + 1):
            yield f"0x{lid:04x} {port:03} # {names[lid - 1]}"
        yield f"{top} lids dumped"


def main() -> None:
    """Write both files."""
    spec, folder = sys.argv[1], Path(sys.argv[2])
    routes = load(spec).routes
    assert routes is not None
    (folder / "report").write_text(write_ibnetdiscover(routes.fabric))
    with (folder / "opensm-lfts.dump").open("w") as file:
        file.writelines(f"{line}\n" for line in dump(routes))


if __name__ == "__main__":
    main()
