"""The entry of the command line, which imports the called command alone, and prints an error as one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import TopompiError
from .former import former_command, present_spelling
from .terminal import HELP, guard_streams

__all__ = ["COMMANDS", "app", "main", "with_late"]

# For each command, by its name: its module and function (or group of subcommands), and its line in the general help.
COMMANDS = {
    "demo": (
        "setup.demo:demo",
        "Show in a minute what topompi does: a fabric, a job scattered over it, its traffic in the order given and "
        "mapped.",
    ),
    "doctor": (
        "setup.doctor:doctor",
        "Examine this machine and this job: MPI, compiled parts, topology, hosts, Slurm, variables, emulation.",
    ),
    "topology": ("topology.app:app", "Fabrics, routes, and the inside of a host."),
    "why": ("run.why:why", "Say what topompi would run for a call where nothing has been measured, and why."),
    "map": ("map.app:make", "Place a program's ranks on a job's slots, as a file for its launcher."),
    "profile": ("profile.app:app", "What a program really sends, by distance."),
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
    "export": (
        "run.export:export",
        "Write a kit that runs a program well, or a file by which an MPI library knows its fastest algorithms.",
    ),
    "slurm": ("slurm.app:app", "Beside Slurm: nodes for jobs, places for tasks, a bridge, a page."),
    "jobs": ("jobs.app:app", "Many jobs on one machine: queues, allocation of nodes, isolation."),
    "colocate": (
        "colocate.app:app",
        "Programs that share nodes: measurement, prediction, pairs and places.",
    ),
    "shutter": ("shutter.app:app", "Jobs of one node, each measured while the others stand still."),
}


def _command(name: str, place: str) -> Any:
    """Import a command, and convert it from a function or a typer group to what click runs.

    :param name: name of the command.
    :param place: its module and function or group, ``module:function``, in this package.
    """
    module, _, function = place.partition(":")
    group = found = getattr(import_module(f"{__package__}.{module}"), function)
    if not isinstance(found, typer.Typer):
        group = typer.Typer(add_completion=False)
        group.command(name=name)(found)
    made: Any = typer.main.get_command(group)
    made.name = name
    for one in (made, *getattr(made, "commands", {}).values()):
        one.make_parser = _once(one.make_parser)
        # Typer keeps the line breaks of a docstring, which are not where a terminal breaks lines.
        one.help = one.help and re.sub(r"(?<!\n)\n(?=[^\n -])", " ", cleandoc(one.help))
    return made


def _once(make_parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make parsers of words that refuse an option with one value if it is given twice: click takes the last value."""

    def made(ctx: Any) -> Any:
        parser = make_parser(ctx)
        parse_args = parser.parse_args

        def parsed(args: list[str]) -> Any:
            values, rest, order = parse_args(args)
            for param in order:
                is_one = not (param.multiple or param.count or param.is_flag) if param.opts[0][:1] == "-" else True
                if is_one and order.count(param) > 1:
                    raise typer.BadParameter(f"expecting it once, got it {order.count(param)} times", ctx, param)
            return values, rest, order

        parser.parse_args = parsed
        return parser

    return made


def with_late(late: Mapping[str, str]) -> type[TyperGroup]:
    """Make a group in which some commands are imported when they are asked for; its help lists them after the others.

    :param late: module and function (``module:function``) of each of these commands, by name.
    """

    class Group(TyperGroup):
        """A group with commands that are imported late."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.waiting: dict[str, str] = dict(late)
            self.commands = {**self.commands, **{name: TyperCommand(name) for name in late}}

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if (place := self.waiting.pop(cmd_name, None)) is not None:
                self.commands[cmd_name] = _command(cmd_name, place)
            return super().get_command(ctx, cmd_name)

    return Group


_Late: Any = with_late({name: place for name, (place, _) in COMMANDS.items()})


class _Commands(_Late):  # type: ignore[misc]  # a class that a function made
    """The group of all commands, which lists the commands in its help without importing their modules."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the whole command line.

        :param ctx: context of the call.
        :param formatter: formatter that receives the text.
        """
        for name in self.waiting:
            self.commands[name].help = COMMANDS[name][1]
        self.waiting: dict[str, str] = {}
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a former spelling ends with exit code 2 and one line that says the present one.

        :param ctx: context of the call.
        """
        try:
            return super().invoke(ctx)
        except Exception as error:  # click's or typer's own classes, whichever brings them
            words = present_spelling(error)
            if words is None:
                raise
            print(f"topompi: {words}", file=sys.stderr)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    name="topompi",
    help="MPI that knows the network: look at fabrics, routes and a job's place in them.",
    epilog="The page docs/tutorial.md shows in ten minutes what to do first.",
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
    if told := former_command(sys.argv[1:]):
        print(f"topompi: {told}", file=sys.stderr)
        sys.exit(2)
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
