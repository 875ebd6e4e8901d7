"""Conversion of programs and networks to the arrays of the packet engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import NetsimError
from ..flows import Hosts
from ..program import COMPUTE, REPEATS, Program
from ..tables import Floats, Integers, Tables
from ..tape import marks_of, waits_of
from .routes import flat_routes
from .settings import NO_LIMIT, Settings

__all__ = ["PICO", "ProgramArrays", "event_buckets", "link_arrays", "numbers"]

PICO = 1e12  # picoseconds per second; the engine counts time in picoseconds
LONGEST = 1e6  # seconds: longest compute burst and latest start of a job, because the engine's clock ends at 4.6e6 s
LEAST_BUCKETS, MOST_BUCKETS = 14, 22  # buckets of events, as powers of two
MOST = 1 << 28  # most ranks, messages, steps or links, because events name them with 28 bits


@dataclass(frozen=True, eq=False)
class ProgramArrays:
    """The programs of all jobs as arrays.

    :param columns: arrays that the engine reads, by the engine's name for each; most names begin with the thing (job,
        rank, step, row, message, ...) of which the array has an entry each.
    :param base: first rank of each job, and the number of ranks, shape (jobs + 1,).
    :param pairs: sending host, receiving host, bytes and job of each message, four arrays of shape (messages,).
    """

    columns: dict[str, NDArray[np.generic]]
    base: Integers
    pairs: tuple[Integers, Integers, Floats, Integers]

    @classmethod
    def of(
        cls,
        tables: Tables,
        programs: Sequence[Program],
        lanes: int,
        begins: Floats,
        skew: Floats,
        hop_lanes: int = 1,
    ) -> ProgramArrays:
        """Make the arrays of programs on a network.

        :param tables: the network.
        :param programs: one program per job.
        :param lanes: number of virtual lanes of the network.
        :param begins: time at which each job begins, in seconds, shape (jobs,).
        :param skew: delay of each rank's start after its job's, in seconds, shape (ranks,).
        :param hop_lanes: number of virtual lanes of each service lane.
        :raises NetsimError: if a host or lane does not exist, or a time is too long.
        """
        for one, begin in zip(programs, begins.tolist(), strict=True):
            if one.hosts.min(initial=0) < 0 or one.hosts.max(initial=-1) >= tables.num_hosts:
                raise NetsimError(f"{one.name}: expecting hosts in range({tables.num_hosts}), got {one.hosts.max()}")
            if one.lane >= lanes // hop_lanes:
                raise NetsimError(f"{one.name}: expecting a lane in range({lanes // hop_lanes}), got {one.lane}")
            longest = max(begin, one.amount[one.kind == COMPUTE].max(initial=0.0))
            if longest > LONGEST:
                raise NetsimError(f"{one.name}: expecting at most {LONGEST:g} s of a burst or a start, got {longest:g}")
        base = np.concatenate(([0], np.cumsum([one.num_ranks for one in programs])))
        rank = np.concatenate([one.rank + first for one, first in zip(programs, base, strict=False)])
        step = np.concatenate([one.step for one in programs])
        begins_step = np.append(True, (np.diff(rank) != 0) | (np.diff(step) != 0))[: len(rank)]
        step_of_row = (np.cumsum(begins_step) - 1).astype(np.int32)
        first_mark, mark_size, step_mark = marks_of(programs, base, rank[begins_step], step[begins_step])
        del step
        messages, columns = _messages(programs, base, step_of_row)
        if max(len(rank), len(messages[2]), len(tables.rate) * lanes) >= MOST:
            raise NetsimError(f"packets: expecting fewer than {MOST} operations and links, got more")
        hosts = np.concatenate([one.hosts for one in programs])
        start = skew + np.repeat(begins, np.diff(base))
        every = np.arange(base[-1] + 1)
        columns |= {
            "job_lane": _short([one.lane * hop_lanes for one in programs]),
            "job_repeat": _short([REPEATS.index(one.repeat) for one in programs]),
            "job_first_rank": _short(base),
            "rank_host": _short(hosts),
            "rank_job": _short(np.repeat(np.arange(len(programs)), np.diff(base))),
            "rank_window": _short(np.repeat([one.window for one in programs], np.diff(base))),
            "rank_start": np.rint(start * PICO).astype(np.int64),
            "rank_first_row": _short(np.searchsorted(rank, every)),
            "rank_first_step": _short(np.searchsorted(rank[begins_step], every)),
            "row_kind": np.concatenate([one.kind for one in programs]).astype(np.int8),
            "row_step": step_of_row,
            "row_after": waits_of(programs),
            "step_operations": _short(np.bincount(step_of_row, minlength=int(begins_step.sum()))),
            "step_rank": _short(rank[begins_step]),
            "step_mark": step_mark,
            "job_first_mark": first_mark,
            "mark_size": mark_size,
        }
        source, destination, nbytes, job = messages
        first, second = np.minimum(source, destination), np.maximum(source, destination)
        pair, which = np.unique(first * base[-1] + second, return_inverse=True)
        columns["message_connection"] = _short(2 * which + (source > destination))
        ends = hosts[np.stack(np.divmod(pair, max(1, base[-1])), axis=1)]
        links, begin = flat_routes(tables, ends.ravel(), ends[:, ::-1].ravel(), hop_lanes)
        columns |= {"connection_route": _short(np.append(begin, len(links))), "route_links": links}
        return cls(columns, base, (hosts[source], hosts[destination], nbytes, job))


def _messages(
    programs: Sequence[Program], base: Integers, step_of_row: NDArray[np.int32]
) -> tuple[tuple[Integers, Integers, Floats, Integers], dict[str, NDArray[np.generic]]]:
    """The sending rank, receiving rank, bytes and job of all messages, and the engine's columns of messages."""
    found = [one.messages for one in programs]
    rows = np.cumsum([0, *(len(one.rank) for one in programs)])
    send, receive = (
        np.concatenate([getattr(one, name) + first for one, first in zip(found, rows, strict=False)])
        for name in ("send_row", "receive_row")
    )
    source, destination = (
        np.concatenate([getattr(one, name) + first for one, first in zip(found, base, strict=False)])
        for name in ("source", "destination")
    )
    nbytes = np.concatenate([one.nbytes for one in found])
    counts = [len(one.nbytes) for one in found]
    value = np.concatenate([np.where(one.kind == COMPUTE, np.rint(one.amount * PICO), 0) for one in programs])
    value = value.astype(np.int64)
    value[send] = value[receive] = np.arange(len(send))
    columns: dict[str, NDArray[np.generic]] = {
        "row_value": value,
        "message_bytes": np.rint(nbytes).astype(np.int64),
        "message_source": _short(source),
        "message_target": _short(destination),
        "send_step": step_of_row[send],
        "receive_step": step_of_row[receive],
        "job_first_message": _short(np.cumsum([0, *counts])),
    }
    return (source, destination, nbytes, np.repeat(np.arange(len(programs)), counts)), columns


def _short(column: object) -> NDArray[np.int32]:
    return np.ascontiguousarray(column, dtype=np.int32)


def link_arrays(tables: Tables, settings: Settings) -> dict[str, NDArray[np.generic]]:
    """The links and the arbitration tables, as arrays by the engine's names for them."""
    arbitration = settings.arbitration
    low = arbitration.low
    if not low and not arbitration.high:
        low = tuple((lane, 1) for lane in range(settings.lanes))
    return _vertices(tables) | {
        "link_inverse": PICO / tables.rate,
        "link_latency": np.rint(tables.latency * PICO).astype(np.int64),
        "link_fill": _fill_times(tables, settings),
        "high": _short(np.array(arbitration.high).reshape(-1, 2)),
        "low": _short(np.array(low).reshape(-1, 2)),
    }


def _vertices(tables: Tables) -> dict[str, NDArray[np.generic]]:
    """The ends of links, with vertices numbered hosts first, then switches and unused adapters.

    An unused adapter counts as a switch to which no route leads.
    """
    hosts, adapters, used = tables.num_hosts, tables.first_switch, tables.adapters[0]
    others = np.setdiff1d(np.arange(adapters), used)
    vertex = np.arange(adapters + tables.num_switches) + (hosts - adapters)
    vertex[used] = np.arange(hosts)
    vertex[others] = hosts + tables.num_switches + np.arange(len(others))
    return {
        "link_source": _short(vertex[tables.source]),
        "link_target": _short(vertex[tables.target]),
        "uplink": _short(tables.uplink[used]),
    }


def _fill_times(tables: Tables, settings: Settings) -> NDArray[np.int64]:
    """The picoseconds in which each link fills its token bucket; -1 for links without a bucket."""
    burst = settings.bursts(tables.rate)
    if not burst.any():
        return np.full(len(tables.rate), -1, dtype=np.int64)
    return np.rint(burst / tables.rate * PICO).astype(np.int64)


def event_buckets(tables: Tables, settings: Settings, used: int) -> tuple[int, int]:
    """The time in half picoseconds that each bucket of the engine's events covers, and their number, as powers of 2.

    This time is about that of a packet on a link divided by the number of hosts with ranks, so that few events share a
    bucket. Together they cover at least two packets on a link, because events later than that go through a heap.

    :param tables: the network.
    :param settings: settings of switches and adapters.
    :param used: number of hosts with ranks.
    """
    packet = (settings.mtu + settings.header) / float(np.median(tables.rate)) * PICO if len(tables.rate) else 1.0
    shift = max(1, int(np.log2(max(2.0, packet / max(1, used)))))
    return shift, min(MOST_BUCKETS, LEAST_BUCKETS + max(0, used // 2048).bit_length())


def numbers(settings: Settings, hosts: Hosts) -> dict[str, float]:
    """The scalar parameters of the engine by name, in bytes and picoseconds, with True as 1 and False as 0.

    :param settings: settings of switches and adapters.
    :param hosts: costs of the hosts.
    """
    limit = settings.arbitration.limit
    return {
        "lanes": settings.lanes,
        "mtu": settings.mtu,
        "header": settings.header,
        "control": settings.control,
        "room": settings.room,
        "grain": settings.grain,
        "eager": min(hosts.eager, 2.0**62),
        "high_limit": -1 if limit == NO_LIMIT else limit * 4096,
        "cut_through": settings.cut_through,
        "one_queue": settings.queueing == "input",
        "put": settings.rendezvous == "put",
        "in_order": settings.adapter == "in order",
        "send_buffer": settings.send_buffer,
        "by_bytes": settings.arbitration.unit != "packets",
        "send_overhead": round(hosts.send_overhead * PICO),
        "receive_overhead": round(hosts.receive_overhead * PICO),
        "gap": round(PICO / settings.message_rate),
        "copy_latency": round(hosts.copy_latency * PICO),
        "copy_inverse": PICO / hosts.copy_rate,
        "processors": settings.processors,
        "poll": round(settings.poll * PICO),
    }
