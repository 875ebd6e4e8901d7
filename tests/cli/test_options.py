"""Groups of options: a dataclass's fields are options of the commands that take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.testing import CliRunner

from topompi.cli.inputs import grouped


@dataclass(frozen=True)
class Pair:
    first: Annotated[str, typer.Argument(help="One.")]
    second: Annotated[int, typer.Option("--second", "-s", help="Another.")] = 2
    kept: list[str] = field(default_factory=list, init=False)


app = typer.Typer()


@app.command()
@grouped
def show(
    pair: Pair,
    *,
    before: Annotated[int, typer.Option("--before")] = 1,
    after: Annotated[bool, typer.Option("--after")] = False,
) -> None:
    """Print the pair."""
    print(pair.first, pair.second, pair.kept, before, after)


def test_a_group_is_made_of_its_options_and_their_defaults() -> None:
    assert CliRunner().invoke(app, ["a"]).output == "a 2 [] 1 False\n"
    assert CliRunner().invoke(app, ["-s", "5", "--before", "3", "a", "--after"]).output == "a 5 [] 3 True\n"


def test_options_of_a_group_stand_at_its_place_in_the_help_and_fields_without_init_do_not() -> None:
    told = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    places = [told.index(word) for word in ("Print the pair", "--second", "--before", "--after")]
    assert places == sorted(places)
    assert "kept" not in told
    assert "default: 2" in told


def test_a_missing_argument_and_a_wrong_value_of_a_group_are_usage_errors() -> None:
    assert CliRunner().invoke(app, []).exit_code == 2
    assert CliRunner().invoke(app, ["a", "-s", "x"]).exit_code == 2
