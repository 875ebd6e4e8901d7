"""The entry of the command line, which imports the called command alone, and prints an error as one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import TopompiError
from .terminal import HELP, guard_streams

__all__ = ["COMMANDS", "app", "main", "with_late"]

# For each command, by its name: its module and function (or group of subcommands), and its line in the general help.
COMMANDS = {
    "schedule": (
        "schedule.app:schedule",
        "Make schedules of a collective, and show what they do to the network and what they cost.",
    ),
    "tune": (
        "run.tune:tune",
        "Measure every algorithm of some collectives in this job against native, and write the rules that follow.",
    ),
    "probe": (
        "run.probe:probe",
        "Measure which hosts of this job stand close together, and how much their links carry.",
    ),
    "why": ("run.why:why", "Say what topompi would run for a call where nothing has been measured, and why."),
    "demo": (
        "setup.demo:demo",
        "Show in a minute what topompi does: a fabric, a job scattered over it, its traffic in the order given and "
        "mapped.",
    ),
    "doctor": (
        "setup.doctor:doctor",
        "Examine this machine and this job: MPI, compiled parts, topology, hosts, Slurm, variables, emulation.",
    ),
    "env": (
        "setup.env:env",
        "List every variable of the environment that topompi reads, with its value and where that comes from.",
    ),
    "topology": ("topology.app:app", "Fabrics, routes, and the inside of a host."),
    "map": ("map.app:app", "Place a program's ranks on a job's slots, as a file for its launcher."),
    "profile": ("profile.app:app", "What a program really sends, by distance."),
    "launch-kit": (
        "run.launchkit:launch_kit",
        "Write a program's rank file, its MPI library's choice file and a script that runs it, into a folder.",
    ),
    "export": ("run.export:app", "Files that MPI libraries read themselves."),
    "slurm": ("slurm.app:app", "Beside Slurm: its topology file, nodes for jobs, places for tasks, a bridge, a page."),
    "jobs": ("jobs.app:app", "Many jobs on one machine: queues, allocation of nodes, isolation."),
    "colocate": (
        "colocate.app:app",
        "Programs that share nodes: measurement, prediction, pairs and places.",
    ),
    "shutter": ("shutter.app:app", "Jobs of one node, each measured while the others stand still."),
}


class _WhenAsked(MutableMapping[str, Any]):
    """A mapping of the commands by name, in which a command's module is imported at the command's first look-up.

    :param late: module and function (``module:function``) of each command that is imported later, by name.
    :param made: commands that are there already, by name; they are listed first.
    """

    def __init__(self, late: Mapping[str, str], made: Mapping[str, Any]) -> None:
        self._late, self._made, self._names = late, dict(made), (*made, *late)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made and name in self._late:
            module, _, function = self._late[name].partition(":")
            self._made[name] = _command(name, getattr(import_module(f"{__package__}.{module}"), function))
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _command(name: str, found: Any) -> Any:
    """Convert a function, or a typer group, to a click command.

    :param name: name of the command.
    :param found: the function or the group.
    """
    group = found
    if not isinstance(found, typer.Typer):
        group = typer.Typer(add_completion=False)
        group.command(name=name)(found)
    group.info.name, group._add_completion = name, False
    made = typer.main.get_command(group)
    made.name = name
    return made


def with_late(late: Mapping[str, str]) -> type[TyperGroup]:
    """Make a group of commands of which some are imported when they are asked for, after the others in its help.

    :param late: module and function (``module:function``) of each of these commands, by name.
    """

    class Group(TyperGroup):
        """A group with commands that are imported late."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _WhenAsked(late, self.commands)

    return Group


class _Commands(TyperGroup):
    """The group of all commands, which lists the commands in its help without importing their modules."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _WhenAsked({name: place for name, (place, _) in COMMANDS.items()}, {})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the whole command line.

        :param ctx: context of the call.
        :param formatter: formatter that receives the text.
        """
        whole = self.commands
        self.commands = {name: TyperCommand(name, help=words) for name, (_, words) in COMMANDS.items()}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = whole


app = typer.Typer(
    cls=_Commands,
    name="topompi",
    help="MPI that knows the network: look at fabrics, routes and a job's place in them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, of any command.")] = False,
) -> None:
    """MPI that knows the network."""


def main() -> None:
    """Run the command line. An error gives exit code 1, and one line (with --debug, a traceback) on standard error."""
    guard_streams()
    if "--version" in sys.argv[1:]:  # valid with every command; no option takes this word as its value
        print(f"topompi {__version__}")
        return
    try:
        app(prog_name="topompi")
    except (TopompiError, OSError, MemoryError) as error:
        if "--debug" in sys.argv:
            raise
        if isinstance(error, BrokenPipeError):
            sys.stderr.close()  # else Python would print another error at exit, when it flushes the output
        else:
            from ..inputs import in_words  # imported here, because most calls have no error

            words = f"expecting less than what memory holds, got more: {error}"
            print(f"topompi: {words if isinstance(error, MemoryError) else in_words(error)}", file=sys.stderr)
        sys.exit(1)
