"""Tables of compared schedules, and of one schedule's steps, for a terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ..terminal import Screen

__all__ = ["draw_comparison", "draw_steps"]

MOST_STEPS = 64  # maximum number of steps that a table shows; of a longer schedule, it shows the first and last 32
PARTS = {
    "host_out": "the busiest host's bytes out",
    "host_in": "the busiest host's bytes in",
    "leaf_out": "the busiest leaf switch's bytes out",
    "leaf_in": "the busiest leaf switch's bytes in",
    "link": "the busiest link's bytes along the routes",
    "latency": "start-ups, log2 p",
}


def draw_comparison(console: Screen, summary: dict[str, Any], *, explain: bool) -> None:
    """Print compared schedules as a table, the lower bound of any schedule's time, and the sizes at which each wins.

    :param console: screen to print on.
    :param summary: result of `topompi.views.scheduled.summarise`.
    :param explain: True to print also every part of the bound.
    """
    whom = "" if summary["root"] is None else f", root {summary['root']}"
    _say(console, f"{summary['collective']} of {summary['bytes']:,} bytes{whom}: {summary['placement']}")
    console.print(_table(summary["schedules"]))
    bound = summary.get("bound", {"seconds": 0})
    if bound["seconds"]:
        which = max(PARTS, key=lambda part: bound[part])
        _say(console, f"no schedule takes less than {_seconds(bound['seconds'])}: {PARTS[which]}")
    if bound["seconds"] and explain:
        for part, words in PARTS.items():
            _say(console, f"  {_seconds(bound[part]):>10}  {words}")
    if summary.get("optimum", {"routes": {"seconds": 0}})["routes"]["seconds"]:
        _say_optimum(console, summary)
    for one in summary["schedules"]:
        if one["wins"]:
            _say(console, f"{one['algorithm']} wins {one['wins']}")
    what = "each link's bytes and each rank's start-ups; no packets, no other jobs"
    _say(console, f"cost by formula, model {summary['model']}: {what}")
    if "dcss" in summary:
        _say(console, f"DCSS chooses {summary['dcss']['choice']}: {summary['dcss']['reason']}")
    if summary["proved"]:
        which = "all do" if len(summary["schedules"]) > 1 else "it does"
        _say(console, f"proved: {which} what MPI defines for {summary['proved']}, without deadlock")


def _say_optimum(console: Screen, summary: dict[str, Any]) -> None:
    """Print the least time without start-ups, on the network's routes and on any, and what proves it."""
    routes, free = summary["optimum"]["routes"], summary["optimum"]["free"]
    best = min(summary["schedules"], key=lambda one: one["cost"])
    times = f"{best['algorithm']} costs {best['over_optimum']:.2f} times it"
    _say(console, f"without start-ups at least {_seconds(routes['seconds'])} on these routes; {times}")
    _say(console, f"  {routes['words']}")
    if free["words"] != routes["words"]:
        _say(console, f"on any routes over the same links at least {_seconds(free['seconds'])}")
        _say(console, f"  {free['words']}")


def draw_steps(console: Screen, steps: list[dict[str, Any]]) -> None:
    """Print a schedule's steps as a table; if there are more than 64, only the first and the last 32."""
    table = Table(
        "step",
        "messages",
        "conflicts",
        "idle ranks",
        "busiest link",
        "adds",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for column in (0, 1, 2, 3, 5):
        table.columns[column].justify = "right"
    half = MOST_STEPS // 2
    shown = steps if len(steps) <= MOST_STEPS else [*steps[:half], None, *steps[-half:]]
    for row in shown:
        if row is None:
            table.add_row("...")
            continue
        numbers = (f"{row[name]:,}" for name in ("step", "transfers", "conflicts", "idle"))
        table.add_row(*numbers, row["busiest"], _seconds(row["seconds"]))
    console.print(table)


def _say(console: Screen, words: str) -> None:
    console.print(words, soft_wrap=True)


def _table(schedules: list[dict[str, Any]]) -> Table:
    classes = sorted({int(hops) for one in schedules for hops in one["by_hops"]})
    sizes = [[one["by_hops"].get(str(hops), {"bytes": 0})["bytes"] for hops in classes] for one in schedules]
    largest = max((size for row in sizes for size in row), default=0)
    power = next((power for power in range(4) if largest < 1000 ** (power + 1)), 4)
    unit = ("B", "KB", "MB", "GB", "TB")[power]
    names = [f"{unit} in host" if hops == 0 else f"{unit} {hops} hop{'s' if hops > 1 else ''}" for hops in classes]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("steps", "messages", *names, "conflicts", "idle", "bound", "ratio", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for one, carried in zip(schedules, sizes, strict=True):
        ratio = "-" if one["ratio"] is None else f"{one['ratio']:.2f}"
        cells = [f"{one['steps']:,}", f"{one['messages']:,}", *(f"{size / 1000**power:,.4g}" for size in carried)]
        cells += [f"{one['conflicts']:,}", f"{one['idle']:.0%}", _seconds(one["bound"]), ratio, _seconds(one["cost"])]
        table.add_row(one["algorithm"], *cells)
    return table


def _seconds(seconds: float) -> str:
    scale, unit = next((one for one in ((1.0, "s"), (1e-3, "ms")) if seconds >= one[0]), (1e-6, "us"))
    return f"{seconds / scale:.4g} {unit}"
