"""The emulated network: each host a namespace, each switch a bridge, each link a veth pair, shaped in both directions.

Bridges forward by the fabric's own tables, as InfiniBand's switches do: every bridge has a static entry for each host,
learns nothing, and floods nothing. Therefore switches may be in a ring or any other fabric with loops. Hosts know each
other's hardware addresses, because no broadcast reaches them.

All bridges, with their ends of the links, are in one separate namespace. Therefore none of them appears among the
machine's interfaces, and removing the namespaces removes everything. Every host has a second interface (``ctl0``)
without a limit of rate, which carries the traffic that starts and controls jobs, like a cluster's administration
network.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.kernel import kernel_bytes
from topompi.inputs.programs import run_program
from topompi.topology import Fabric, Routes
from topompi.topology.sources import fabricjson

from .agent import write_agent
from .records import NetworkRecord, put

__all__ = [
    "CONTROL",
    "DATA",
    "MTU",
    "address",
    "burst_of",
    "check_rights",
    "end_processes",
    "lower",
    "ports",
    "processes",
    "raise_network",
]

DATA, CONTROL = "eth0", "ctl0"
# Bytes of a frame. Jumbo frames are used, because the processor's cost is per packet: with frames of 1,500 bytes the
# processor, and not the links, would be the bottleneck already at much lower rates.
MTU = 9000
MOST_ENVIRONMENT = 8 << 20  # bytes of a process's environment, which the kernel limits to 6 MiB with its arguments
QUEUE = 16 << 20  # bytes of a link's queue, more than all TCP windows together, because a lossless fabric drops nothing
# Bytes of TCP's send window. They are far above the bandwidth-delay product of a few KiB, so that links stay busy while
# processes wait for a processor, but small enough that senders to one common host do not run into their time-outs.
WINDOW = 262144
# Bytes of TCP's receive window. They exceed the data that arrive while data of the other direction wait in a queue,
# because acknowledgements overtake these (see _shape), and TCP drops data whose own acknowledgement is older than the
# window (RFC 5961, 5.2).
OFFERED = 4 << 20
UNSHAPED = "20gbit"  # rate of the classes inside the token bucket, above any link's, because they only order packets
LATENESS = 200e-6  # seconds by which a timer may be late without loss of the link's throughput

_SYSCTLS = {
    "ipv6/conf/all/disable_ipv6": "1",  # IPv6's own packets would be noise on the links
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/tcp_slow_start_after_idle": "0",  # off, because real high-speed networks have no slow start
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_congestion_control": "reno",  # the simplest: it fills the window, and neither paces nor probes
    "ipv4/tcp_rmem": f"4096 {OFFERED} {OFFERED}",
    "ipv4/tcp_wmem": f"4096 {WINDOW} {WINDOW}",
    "ipv4/tcp_early_retrans": "0",  # off, because a late packet waits in a queue and is not lost
    "ipv4/tcp_rto_min_us": "4000000",  # because a late packet is not lost; Linux has this setting since 6.11
    "ipv4/neigh/default/gc_stale_time": "86400",
}


def check_rights() -> None:
    """Raise BenchmarkError unless this process may make namespaces here, and has the programs for it."""
    wanted = ("ip", "bridge", "tc", "nsenter", "unshare")
    found = [name for name in wanted if shutil.which(name) is not None]
    if len(found) < len(wanted):
        names = ", ".join(found) or "none"
        raise BenchmarkError(f"emulate: expecting {', '.join(wanted)} (iproute2, util-linux) on the path, got {names}")
    if os.geteuid() != 0:
        raise BenchmarkError(f"emulate: expecting root, to make network namespaces, got user id {os.geteuid()}")


def raise_network(routes: Routes, state: NetworkRecord) -> None:
    """Make the namespaces, bridges and links of an emulated network.

    :param routes: routes over a fabric with rates, from ``emulated_routes``.
    :param state: record of the network.
    :raises BenchmarkError: if a command fails, for example because the kernel has no tbf; all parts are then removed.

    Cost: some 10 ms per host.
    """
    put(state.path / fabricjson.NAME, fabricjson.write(routes.fabric, routes))
    write_agent(state, [address(host, CONTROL) for host in range(len(state.hosts))])
    try:
        for namespace in state.namespaces:
            _command(["ip", "netns", "add", namespace])
            _set_up(namespace)
        for tool, namespace, lines in _wiring(routes, state):
            _command([tool, "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")
    except BaseException:
        lower(state)
        raise


def address(host: int, interface: str, prefix: bool = False) -> str:
    """Return the IPv4 address of a host.

    :param host: number of the host.
    :param interface: ``DATA`` or ``CONTROL``.
    :param prefix: True to append the length of the network's prefix.
    """
    net = {DATA: "10.77", CONTROL: "10.78"}[interface]
    return f"{net}.{(host + 1) // 256}.{(host + 1) % 256}" + ("/16" if prefix else "")


def lower(state: NetworkRecord, patience: float = 10.0) -> None:
    """End the processes on an emulated network, and remove the network and its directory; missing parts are no error.

    :param state: record of the network.
    :param patience: seconds to wait for processes to end.
    :raises BenchmarkError: if a process does not end or a namespace cannot be removed; ``down`` may then be repeated.
    """
    end_processes(state.namespaces, patience=patience)
    for namespace in state.namespaces:
        if _path(namespace).exists():
            _command(["ip", "netns", "delete", namespace])
    state.forget()


def processes(namespaces: Iterable[str], marker: str = "") -> list[int]:
    """Return the ids of processes in namespaces; with a marker, only of those whose environment contains it."""
    inside = {key for name in namespaces if (key := _identity(_path(name)))}
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_inside = _identity(path / "ns" / "net") in inside
        except OSError:  # the process has just ended
            continue
        environment = kernel_bytes(path / "environ", MOST_ENVIRONMENT) if is_inside else None
        if environment is not None and marker.encode() in environment:
            found.append(int(path.name))
    return found


def end_processes(namespaces: Iterable[str], marker: str = "", patience: float = 10.0) -> None:
    """Kill the processes in namespaces, and the processes that they start meanwhile.

    :param namespaces: names of the namespaces.
    :param marker: text in the environment of the processes to kill; "" to kill all processes.
    :param patience: maximum seconds to wait for the processes to end.
    :raises BenchmarkError: if processes are left after that.
    """
    namespaces = list(namespaces)
    until = time.monotonic() + patience
    while left := processes(namespaces, marker):
        if time.monotonic() > until:
            raise BenchmarkError(
                f"emulate: expecting all processes to end within {patience:g} s, got {left} still running"
            )
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _path(namespace: str) -> Path:
    return Path("/run/netns") / namespace


def _set_up(namespace: str) -> None:
    writes = "; ".join(f"echo {value} > /proc/sys/net/{key}" for key, value in _SYSCTLS.items())
    # On a kernel without IPv6 the keys of IPv6, which come first, are missing; this error is ignored.
    script = f"ip link set lo up || exit 1; exec 2>/dev/null; {writes}; exit 0"
    _command(["nsenter", f"--net={_path(namespace)}", "sh", "-c", script])


def _wiring(routes: Routes, state: NetworkRecord) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the commands that make and configure the parts of the network, in order.

    Each entry is a program (``ip``, ``bridge`` or ``tc``), a namespace, and the lines of the program's batch there.
    """
    fabric = routes.fabric
    first = fabric.num_adapters
    links, ports, shapes = ["link add ctl type bridge", "link set ctl up"], [], []
    for switch in range(fabric.num_switches):
        links += [f"link add s{switch} mtu {MTU} type bridge mcast_snooping 0", f"link set s{switch} up"]
    for source, target, rate in zip(fabric.link_source, fabric.link_target, fabric.link_rate.tolist(), strict=True):
        if source < first:  # the direction up; the veth pair is made for the direction down
            continue
        port = _port(fabric, source, target)
        if target < first:
            host = state.namespace(fabric.hosts[fabric.adapter_host[target]])
            peer = f"{DATA} address {_hardware(int(fabric.adapter_host[target]))}"
            links.append(f"link add {port} mtu {MTU} type veth peer name {peer} mtu {MTU} netns {host}")
        elif source < target:
            links.append(f"link add {port} mtu {MTU} type veth peer name {_port(fabric, target, source)} mtu {MTU}")
        ports.append(f"link set {port} master s{source - first} up")
        ports.append(f"link set {port} type bridge_slave learning off flood off mcast_flood off bcast_flood off")
        shapes += _shape(port, rate)
    for number, namespace in enumerate([*map(state.namespace, state.hosts), state.head]):
        links.append(f"link add c{number} type veth peer name {CONTROL} netns {namespace}")
        links.append(f"link set c{number} master ctl up")
    yield "ip", state.switches, links + ports
    yield "bridge", state.switches, _forwarding(routes)
    yield "tc", state.switches, shapes
    for number, name in enumerate(state.hosts):
        namespace = state.namespace(name)
        known = [
            f"neighbour add {address(other, DATA)} lladdr {_hardware(other)} dev {DATA} nud permanent"
            for other in range(len(state.hosts))
            if other != number
        ]
        yield "ip", namespace, [*_addressed(number, DATA), *_addressed(number, CONTROL), *known]
        adapter = int(fabric.host_adapters[number][0])
        yield "tc", namespace, _shape(DATA, float(fabric.link_rate[fabric.adapter_uplink[adapter]]))
    yield "ip", state.head, _addressed(len(state.hosts), CONTROL)


def _hardware(host: int) -> str:
    """Return the hardware address of a host's data interface, a locally administered one."""
    return f"02:77:00:00:{host // 256:02x}:{host % 256:02x}"


def _forwarding(routes: Routes) -> list[str]:
    """Return the static entries of all bridges: the port towards each host."""
    fabric, first = routes.fabric, routes.fabric.num_adapters
    lines = []
    for switch, row in enumerate(routes.next_link[0].tolist()):
        for adapter, link in enumerate(row):
            if link >= 0:
                port = _port(fabric, first + switch, int(fabric.link_target[link]))
                lines.append(f"fdb add {_hardware(int(fabric.adapter_host[adapter]))} dev {port} master static")
    return lines


def _port(fabric: Fabric, switch: int, other: int) -> str:
    """Return the name of a switch's interface towards another vertex."""
    first = fabric.num_adapters
    return f"s{switch - first}-h{other}" if other < first else f"s{switch - first}-s{other - first}"


def ports(fabric: Fabric) -> Iterator[tuple[str, str, float]]:
    """Yield, per link, the counter of its bytes (a switch's interface, ``tx`` or ``rx``) and its rate in bytes/s."""
    first = fabric.num_adapters
    for source, target, rate in zip(fabric.link_source, fabric.link_target, fabric.link_rate.tolist(), strict=True):
        if source >= first:
            yield _port(fabric, source, target), "tx", rate
        else:
            yield _port(fabric, target, source), "rx", rate


def _addressed(host: int, interface: str) -> list[str]:
    return [f"address add {address(host, interface, prefix=True)} dev {interface}", f"link set {interface} up"]


def burst_of(rate: float) -> int:
    """Return the size of a link's token bucket in bytes: two frames, and what the link carries while a timer is late.

    :param rate: rate of the link in bytes/s.
    """
    return 2 * (MTU + 14) + int(rate * LATENESS)


def _shape(device: str, rate: float) -> list[str]:
    """Return commands that limit the rate of an interface with a token bucket.

    The bucket is as small as timers allow, because an idle link passes a full bucket's bytes at once.

    TCP's bare acknowledgements (52 bytes with their time stamp) pass the bucket before data. If they waited behind
    data, links that are busy in both directions would lose rate (Zhang, Shenker and Clark, "Observations on the
    dynamics of a congestion control algorithm: the effects of two-way traffic", 1991), unlike the links of real
    high-speed networks, which have no such acknowledgements.
    """
    return [
        f"qdisc add dev {device} root handle 1: tbf rate {round(rate * 8)}bit burst {burst_of(rate)} limit {QUEUE}",
        f"qdisc add dev {device} parent 1:1 handle 2: htb default 2",
        *(
            f"class add dev {device} parent 2: classid 2:{band} htb rate {UNSHAPED} quantum 60000 prio {band}"
            for band in (1, 2)
        ),
        *(f"qdisc add dev {device} parent 2:{band} bfifo limit {QUEUE}" for band in (1, 2)),
        f"filter add dev {device} parent 2: protocol ip u32 match u16 52 0xffff at 2 flowid 2:1",
    ]


def _command(arguments: list[str], text: str = "") -> None:
    run_program(arguments, f"success of {' '.join(arguments)}", 60, BenchmarkError, told=text.encode())
