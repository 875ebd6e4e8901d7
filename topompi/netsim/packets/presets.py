"""Settings of switches, adapters and hosts of known networks, with the source of each number."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..flows import Hosts
from .settings import Settings

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True)
class Preset:
    """The settings of a network.

    :param hosts: costs of the hosts.
    :param settings: settings of switches and adapters.
    :param rate: rate in bytes/s of links whose rate the fabric does not contain.
    :param latency: latency in seconds from one switch to the next, for links whose latency the fabric does not contain.
    :param sources: source of each number; ``assumed`` if there is none.
    """

    hosts: Hosts
    settings: Settings
    rate: float
    latency: float
    sources: dict[str, str]


THESIS = "A. Jokanovic, PhD thesis, UPC 2014"
SPECIFICATION = "InfiniBand Architecture Specification, volume 1"
FITTED = "fitted to half of tests/records/emulated.json (benchmarks.packets_emulated --fit)"

PRESETS = {
    "fdr": Preset(
        hosts=Hosts(send_overhead=0.3e-6, receive_overhead=0.3e-6, copy_rate=5e9, eager=12288, skew=2e-6),
        settings=Settings(mtu=4096, header=26, control=62, buffer=65536, lanes=1, message_rate=130e6),
        rate=6.75e9,
        latency=1e-7,
        sources={
            "rate": "54 Gbit/s of data on four lanes, as the InfiniBand Trade Association's roadmap rounds them",
            "latency": f"{THESIS}, 1.2.3: switches of about 100 ns",
            "mtu": f"{THESIS}, table 3.1: segments of 4 KB; the largest MTU of InfiniBand",
            "header": f"{SPECIFICATION}, 7 and 9: local route, base transport, two checksums: 8 + 12 + 4 + 2 bytes",
            "control": "assumed: a header and 36 bytes of what a library says",
            "buffer": f"{THESIS}, table 5.1: 64 KB a port, divided among its lanes",
            "lanes": f"{THESIS}, table 5.2: one lane unless jobs are kept apart",
            "grain": f"{SPECIFICATION}, 7.9: credits count blocks of 64 bytes",
            "queueing": f"{THESIS}, 1.1: virtual output queues",
            "cut_through": f"{THESIS}, 1.1: the head of a message is not held until its tail comes",
            "arbitration": f"{SPECIFICATION}, 7.6.9; one lane has nothing to arbitrate",
            "message_rate": "Mellanox on Connect-IB, HPCwire, 18 June 2012: 130 million messages/s",
            "adapter": f"{SPECIFICATION}, 9 and 10: queue pairs; that they take turns by packets is assumed",
            "rendezvous": "Open MPI's developers' list, May 2014: get where memory stays registered, else put",
            "eager": "Open MPI's openib BTL: btl_openib_eager_limit is 12 KiB",
            "send_overhead": "assumed: 8 bytes through one switch take 0.8 us, most of it in the two hosts",
            "receive_overhead": "assumed, as send_overhead",
            "copy_latency": "none beside the overhead of the receiver",
            "copy_rate": "assumed; it matters for messages inside a host only",
            "skew": "assumed: ranks leave a barrier within 2 us",
            "burst": "links are wires",
            "lateness": "likewise",
            "processors": "each rank has a core",
            "poll": "likewise",
            "send_buffer": "a word of the receiver ends a send",
            "hop_lanes": f"{THESIS}, 1.2: fat trees, whose routes need one",
        },
    ),
    "emulated": Preset(
        hosts=Hosts(send_overhead=3e-5, receive_overhead=3e-5, copy_rate=1e9, eager=65536 - 64),
        settings=Settings(
            mtu=8948,
            header=66,
            control=130,
            buffer=16 << 20,
            cut_through=False,
            adapter="in order",
            rendezvous="put",
            burst=2 * 9014,
            lateness=200e-6,
            processors=2,
            poll=1e-5,
            send_buffer=262144,
        ),
        rate=12.5e6,
        latency=1e-5,
        sources={
            "rate": "osu_like_bench emulate: 100 Mbit/s unless told",
            "latency": "assumed: a bridge and two queues of the kernel",
            "mtu": "osu_like_bench emulate: 9,000, less 52 of IP and TCP",
            "header": "14 of Ethernet, 20 of IP, 32 of TCP with time stamps",
            "control": "assumed: a header and 64 bytes of what a library says",
            "buffer": "osu_like_bench emulate: 16 MiB a queue, which nothing fills",
            "lanes": "osu_like_bench emulate: one band of priority for the programs",
            "grain": "assumed; it matters not where buffers never fill",
            "queueing": "assumed; likewise",
            "cut_through": "Linux bridges pass on whole frames",
            "arbitration": "one lane has nothing to arbitrate",
            "message_rate": "no bound beside the overheads",
            "adapter": "one queue of the kernel for all connections of a host",
            "rendezvous": "Open MPI's ob1 on TCP: the receiver grants, in order behind data on the connection",
            "burst": "osu_like_bench emulate: tc tbf with a burst of two frames",
            "lateness": "osu_like_bench emulate: and of what a link carries in 200 us",
            "processors": "the machine of the record has two",
            "poll": FITTED,
            "send_buffer": "osu_like_bench emulate: tcp_wmem",
            "hop_lanes": "Ethernet has one lane",
            "eager": "Open MPI's TCP BTL: btl_tcp_eager_limit is 64 KiB, header included; 64 bytes of it are assumed",
            "send_overhead": FITTED,
            "receive_overhead": f"{FITTED}; as send_overhead",
            "copy_latency": "none beside the overhead of the receiver",
            "copy_rate": "assumed; it matters for messages inside a host only",
            "skew": "none beside the turns of the processors",
        },
    ),
}
PRESETS["emulated-mpich"] = replace(
    PRESETS["emulated"],
    hosts=replace(PRESETS["emulated"].hosts, eager=65536),
    sources=PRESETS["emulated"].sources | {"eager": f"{FITTED}: whole messages of 64 KiB go at once"},
)
