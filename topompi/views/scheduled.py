"""Evaluation of schedules on a job's network: loads, costs and steps, in numbers and with the names of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schedules import Network, Schedule
from ..schedules.alltoall.dcss import dcss
from ..schedules.analysis.cost import Cost, cost
from ..schedules.analysis.loads import Analysis, analyse
from ..schedules.analysis.model import Model
from ..schedules.registry import find_algorithm
from ..schedules.schedule import ROOTED
from ..schedules.segments import cut, make_cut
from ..topology import TopologyInterface
from .network import UNKNOWN_RATE

if TYPE_CHECKING:
    from ..schedules.analysis.optimum import Optimum

__all__ = ["PRESETS", "Made", "calibrated", "least_time", "link_names", "short_link_names", "steps_of", "summarise"]

MOST_NAME = 26  # letters of a switch's or host's name in a picture
PRESETS = ("stampede", "ranger")


@dataclass(frozen=True, eq=False)
class Made:
    """A schedule that an algorithm has made, with its analysis and its cost on a network.

    :param name: name of the algorithm, with its segment size if it is segmented (``ring/32K``).
    :param schedule: the schedule, whose transfers are of blocks.
    :param block_bytes: size of a block in bytes.
    :param slices: number of parts that every transfer is divided into.
    :param analysis: loads of the links, conflicts (messages of a step on a link beyond those that it carries at full
        rate), and the lower bound of the time.
    :param cost: predicted time in seconds, in total and per step.
    """

    name: str
    schedule: Schedule
    block_bytes: int
    slices: int
    analysis: Analysis
    cost: Cost

    @classmethod
    def make(
        cls,
        collective: str,
        name: str,
        network: Network,
        model: Model,
        root: int,
        nbytes: int,
        blocks: int | None = None,
        parameters: dict[str, object] | None = None,
    ) -> Made:
        """Make an algorithm's schedule for a message of ``nbytes``, divided into blocks of whole bytes, rounded up.

        :param collective: name of the collective, for example ``bcast``.
        :param name: name of the algorithm, with a segment size if it is to be segmented.
        :param network: hosts of the ranks, routes and bandwidths.
        :param model: cost model, with the start-up time of a message and its time per byte.
        :param root: rank of the root; 0 if the collective has none.
        :param nbytes: size of the message in bytes.
        :param blocks: number of blocks to divide the message into; by default the algorithm's choice, with at least a
            byte per block.
        :param parameters: further arguments of the algorithm, by name.
        """
        made = make_cut(collective, name, network, root, nbytes, blocks, **(parameters or {}))
        schedule, block_bytes, slices = made.schedule, made.block_bytes, made.slices
        analysis = analyse(schedule, network, block_bytes, alpha=min(model.t_s))
        costs = cost(schedule, network, model, block_bytes, slices=slices)
        return cls(name, schedule, block_bytes, slices, analysis, costs)


def calibrated(network: Network, model: str) -> tuple[Network, Model]:
    """Adapt the network's rates to the cost model, or the model's cost per byte to the network.

    If no rate is known, all links get the model's rate. If rates are known and the model is a preset, its cost per byte
    becomes that of the fastest host link. If rates are known and the model is measured, both stay unchanged.

    :param network: the job's network with its rates.
    :param model: one of PRESETS, or a JSON file of measurements.
    :returns: the network and the model.
    """
    costs = Model.preset(model) if model in PRESETS else Model.from_measured(model)
    if (network.capacity == UNKNOWN_RATE).all():
        rate = 1 / costs.t_w[-1] if costs.t_w[-1] else UNKNOWN_RATE
        return replace(network, capacity=network.capacity * rate), costs
    first = network.links[:, :, :1]
    fastest = float(network.capacity[first[first >= 0]].max(initial=0.0))
    if model in PRESETS and fastest:
        costs = replace(costs, t_w=(1 / fastest,) * len(costs.hops))
    return network, costs


def link_names(interface: TopologyInterface) -> list[str] | None:
    """Display name of each link (``source → target``); None if no fabric is known."""
    return None if interface.routes is None else list(interface.routes.fabric.link_names)


def short_link_names(interface: TopologyInterface) -> list[str] | None:
    """Names of all links for pictures, without the end that all switches' names share; None if no fabric is known."""
    if interface.routes is None:
        return None
    from ..inputs.figures import cut_middle, without_common_end  # imported here, because only drawings need them
    from ..topology.labels import end_name, switch_labels

    fabric = interface.routes.fabric
    switches = without_common_end(switch_labels(fabric))
    ends = zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True)
    return [" → ".join(cut_middle(end_name(fabric, switches, end), MOST_NAME) for end in both) for both in ends]


def summarise(
    collective: str,
    made: Sequence[Made],
    interface: TopologyInterface,
    network: Network,
    root: int,
    nbytes: int,
    model: str,
    *,
    proved: bool,
) -> dict[str, Any]:
    """Summarise the costs and loads of some schedules of one collective, ready for JSON.

    :param collective: name of the collective, for example ``bcast``.
    :param made: the schedules, at least one.
    :param interface: the placement of the ranks.
    :param network: the network of the same placement, as arrays.
    :param root: rank of the root; left out of the summary if the collective has none.
    :param nbytes: size of the message in bytes.
    :param model: name of the cost model.
    :param proved: whether the schedules have been proved correct.
    """
    bound = made[0].analysis.bound
    summary: dict[str, Any] = {
        "collective": collective,
        "placement": interface.describe(),
        "ranks": interface.num_ranks,
        "hosts": interface.num_hosts,
        "root": root if collective in ROOTED else None,
        "bytes": nbytes,
        "model": model,
        "bound": {"seconds": bound.seconds, **asdict(bound)},
        "proved": made[0].schedule.collective if proved else None,
        "schedules": [_figures(collective, one) for one in made],
    }
    least = least_time(collective, network, root)
    if least is not None:
        summary["optimum"] = _optimum(least, nbytes, interface)
        for one in summary["schedules"]:
            one["over_optimum"] = one["cost"] / (least.given.seconds * nbytes) if least.given.seconds else None
    if len({one.analysis.bound for one in made}) > 1:  # no common bound: rows and columns of an FFT move other data
        del summary["bound"]
    if collective == "alltoall":
        choice = dcss(network)
        summary["dcss"] = {"choice": choice.algorithm, "reason": choice.reason}
    return summary


def least_time(collective: str, network: Network, root: int) -> Optimum | None:
    """The least time of long messages; None for a collective that has none, and for jobs of more than 256 hosts.

    :param collective: name of the collective.
    :param network: the job's network.
    :param root: rank of the root.
    """
    from ..schedules.analysis.optimum import LONG, MOST_HOSTS, optimum  # imported late: every rank imports this module

    if collective not in LONG or network.num_hosts > MOST_HOSTS:
        return None
    return optimum(collective, network, root=root)


def _optimum(least: Optimum, nbytes: int, interface: TopologyInterface) -> dict[str, Any]:
    """The least time of a message, on given routes and on any, with the proof of each, ready for JSON."""
    names = link_names(interface)
    return {
        name: {
            "seconds": proof.seconds * nbytes,
            "reached": proof.reached * nbytes if isfinite(proof.reached) else None,
            "proof": proof.kind,
            "sets": [[interface.hosts[host] for host in one.tolist()] for one in proof.sets],
            "links": [f"link {link}" if names is None else names[link] for link in proof.links.tolist()],
            "bytes": proof.needed * nbytes,
            "rate": proof.rate,
            "words": proof.words,
        }
        for name, proof in (("routes", least.given), ("free", least.free))
    }


def _figures(collective: str, made: Made) -> dict[str, Any]:
    analysis = made.analysis
    busy = analysis.idle_ranks[analysis.idle_ranks < made.schedule.size]  # without steps in which all ranks are idle
    by_hops = {
        str(hops): {"messages": int(messages) * made.slices, "bytes": int(size)}
        for hops, (messages, size) in enumerate(zip(analysis.messages_by_hops, analysis.bytes_by_hops, strict=True))
        if messages
    }
    return {
        "algorithm": made.name,
        "schedule": made.schedule.algorithm,
        "blocks": made.schedule.blocks,
        "block_bytes": made.block_bytes,
        "steps": analysis.active_steps,
        "messages": int(analysis.messages_by_hops.sum()) * made.slices,
        "by_hops": by_hops,
        "conflicts": int(analysis.conflicts.sum()),
        "idle": float(busy.mean() / made.schedule.size) if len(busy) else 0.0,
        "bound": analysis.bound.seconds,
        "ratio": None if np.isnan(analysis.ratio) else analysis.ratio,
        "cost": made.cost.seconds,
        "wins": find_algorithm(collective, cut(made.name)[0]).when,
    }


def steps_of(made: Made, interface: TopologyInterface) -> list[dict[str, object]]:
    """List the steps of a schedule, one row each: messages, conflicts, idle ranks, busiest link, time in seconds.

    A conflict is a message on a link beyond those that the link carries at full rate in the step.

    :param made: the schedule with its analysis.
    :param interface: the placement of the ranks, for the names of links.
    """
    analysis, names = made.analysis, link_names(interface)
    rows = made.schedule.messages
    messages = np.bincount(made.schedule.step[rows], minlength=analysis.num_steps)
    table = []
    for step in range(analysis.num_steps):
        link = int(analysis.busiest_link[step])
        table.append(
            {
                "step": step,
                "transfers": int(messages[step]),
                "conflicts": int(analysis.conflicts_of_step[step]),
                "idle": int(analysis.idle_ranks[step]),
                "busiest": "" if link < 0 else f"link {link}" if names is None else names[link],
                "seconds": float(made.cost.step_seconds[step]),
            }
        )
    return table
