"""Options: groups of them, the bounds of numbers, and texts that are no numbers, pairs or host lists."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from docs.commandline import Entry, commands
from topompi.cli.app import app as topompi
from topompi.cli.inputs import grouped
from topompi.cli.quantities import BYTES, FACTOR, parse_bytes
from topompi.errors import SourceError, TopompiError


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


LONG = "9" * 30
ABSURD = ("-1", LONG, "nan", "inf", "")


def accepted(entry: Entry) -> list[str]:
    """The absurd values that options of a command for numbers take."""
    numbers = [one for one in entry.command.params if any(_is_number(_taken(entry, one, text)) for text in "016")]
    return [
        f"{' '.join(entry.words)} {one.opts[0]}: {text}"
        for one in numbers
        for text in ABSURD
        if _taken(entry, one, text) is not REFUSED
    ]


REFUSED = object()


def _taken(entry: Entry, parameter: Any, text: str) -> Any:
    """The value that a command gets for a text; REFUSED if this is a usage error."""
    try:
        return parameter.process_value(entry.context(), text)
    except TopompiError:
        return REFUSED
    except Exception as error:
        if getattr(error, "exit_code", None) == 2:
            return REFUSED
        raise


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_numbers_have_bounds_and_absurd_ones_are_usage_errors() -> None:
    assert [wrong for entry in commands("topompi") for wrong in accepted(entry)] == []


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        (typer.Option("--x"), ["-1", LONG, "inf"]),
        (typer.Option("--x", min=0.0), [LONG, "inf"]),
        (typer.Option("--x", min=0.0, max=float("inf")), [LONG, "inf"]),
        (FACTOR("--x"), []),
        (FACTOR(argument=True), []),
    ],
)
def test_a_number_without_bounds_is_found(declared: Any, taken: list[str]) -> None:
    made = typer.Typer(add_completion=False)

    @made.command()
    def take(x: float = declared) -> None:
        """Take a number."""

    assert {*taken} <= {one.rpartition(" ")[2] for one in accepted(Entry(("x",), typer.main.get_command(made)))}
    assert taken or not accepted(Entry(("x",), typer.main.get_command(made)))


FABRIC = "xgft:2,2;1,1"
MAP = ("map", "graph", "--topology", FABRIC)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("schedule", "bcast", "--topology", FABRIC, "--bytes", LONG), "--bytes: expecting a number of bytes"),
        (("schedule", "bcast", "--topology", FABRIC, "--bytes", "-1"), "--bytes: expecting a number of bytes"),
        (("schedule", "bcast", "--topology", FABRIC, "--set", "a=1", "--set", "a=2"), "--set: expecting a once"),
        (("schedule", "bcast", "--topology", FABRIC, "--set", "=1"), "--set: expecting NAME=VALUE"),
        (("topology", "draw", FABRIC, "-o", "x.svg", "--place", "wild"), "--place: placement: expecting block"),
        (("topology", "draw", FABRIC, "-o", "x.svg", "--place", f"random:{LONG}"), "--place: placement: expecting"),
        (("topology", "show", FABRIC, "--hosts", "n[3-1]"), "expecting a range that ascends"),
        (("topology", "show", FABRIC, "--limit", "hosts=1,hosts=2"), "--limit: expecting NAME=NUMBER"),
        ((*MAP, "--slots", LONG), "--slots"),
        ((*MAP, "--slots", "-1"), "--slots"),
        ((*MAP, "--slots", "nan"), "--slots"),
        (("jobs", "replay", "ft@ranks=4,ranks=8", "--topology", FABRIC), "expecting ranks once, got '4' and '8'"),
        (("jobs", "replay", "ft@ranks=nan", "--topology", FABRIC), "ranks: expecting a whole number"),
        (("colocate", "place", "compact", "-n", "2", "--hosts", "n[1-"), "expecting ']'"),
        (("colocate", "pair", "heat.csv", "--pool", "a=1,a=2"), "--pool: expecting a once, got '1' and '2'"),
        (("shutter", "run", "--log", "x", "--job", "a=pgid:1", "--job", "a=pgid:2"), "--job: expecting a once"),
        (("doctor", "--hosts", "n[1-"), "expecting ']'"),
    ],
)  # fmt: skip
def test_texts_that_are_no_numbers_pairs_or_host_lists_are_refused(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1)  # the shutter asks root for users first
    (tmp_path / "graph").write_text("0 1 5\n2 3 5\n")
    (tmp_path / "heat.csv").write_text("program,a,b\na,1,0.9\nb,1.1,1\n")
    done = CliRunner().invoke(topompi, list(words))
    assert isinstance(done.exception, TopompiError | SystemExit)
    assert done.exit_code
    assert told in done.output + str(done.exception)


@pytest.mark.parametrize("text", ["0", "-1", LONG, "nan", "inf", "", "1.5", "99999999999999999G"])
def test_a_size_that_is_no_number_of_bytes_or_beyond_its_bounds_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="--bytes: expecting a number of bytes"):
        parse_bytes(text, "--bytes", SourceError)
    assert parse_bytes("1M", "--bytes", SourceError) == 1 << 20 <= BYTES.most
