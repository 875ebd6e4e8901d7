"""Foreign names in all outputs: they appear as text, without markup, control characters or formulas."""

import ast
import csv
import io
import json
import socket
import threading
import xml.etree.ElementTree as ElementTree
from contextlib import redirect_stderr, redirect_stdout

import pytest

from tests.ibreports import S1, Model, default_report
from tests.support import ROOT, command_line
from topompi.cli.terminal import console, guard_streams
from topompi.errors import SourceError
from topompi.visible import csv_cell, unmarked, visible

MARKUP = ["[bold]x[/foo]", "[link=http://h]y", "[/x]", "run[red]", ":smile:"]
CONTROL = ["\x1b]52;c;aGk=\x07", "\x1b[31m", "\x9b2J", "\x7f", "\r", "\x00", "\u202e"]


def ibnetdiscover(leaf):
    """Two leaf switches with two hosts each below a spine; the first leaf switch has the name."""
    model = Model.on_leaves(["h1 mlx5_0", "h2 mlx5_0"], ["h3 mlx5_0", "h4 mlx5_0"])
    model.switches[S1] = leaf
    return default_report(model)


@pytest.fixture(params=[*MARKUP, *CONTROL[:4]])
def name(request):
    return request.param


@pytest.fixture
def source(tmp_path, name):
    path = tmp_path / "f.ibnetdiscover"
    path.write_text(ibnetdiscover(name), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["links", "--topology"],
        ["links", "--by", "leaf", "--topology"],
        ["links", "--csv", "--topology"],
        ["show", "--json"],
    ],
    ids=" ".join,
)
def test_a_switch_may_have_any_name(source, name, words):
    done = command_line("topology", *words, source)
    assert done.returncode == 0, done.stderr
    assert not any(sign in done.stdout + done.stderr for sign in "\x1b\x07\x7f\x9b\u202e")
    if name in MARKUP and "leaf" in words:
        assert name in done.stdout


def test_differences_show_the_names_of_switches_as_they_are(tmp_path):
    for file, name in (("a.ibnetdiscover", "[bold]x[/foo]"), ("b.ibnetdiscover", "[link=http://h]y")):
        (tmp_path / file).write_text(ibnetdiscover(name).replace(S1[2:], f"{ord(file[0]):016x}"), encoding="utf-8")
    done = command_line("topology", "diff", tmp_path / "a.ibnetdiscover", tmp_path / "b.ibnetdiscover")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("host", ["[/]", "h[1", "x,y", "\x1b[2J"])
def test_a_host_may_have_any_name(tmp_path, host):
    (tmp_path / "f.ibnetdiscover").write_text(
        ibnetdiscover("leaf").replace("h1 mlx5", f"{host} mlx5"), encoding="utf-8"
    )
    done = command_line("topology", "show", "f.ibnetdiscover", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert visible(host) in done.stdout


@pytest.mark.parametrize("folder", ["a[", "[", "x[red].d", "\x1b[31m"])
def test_a_folder_may_have_any_name(tmp_path, folder):
    path = tmp_path / folder / "f.ibnetdiscover"
    path.parent.mkdir()
    path.write_text(ibnetdiscover("leaf"), encoding="utf-8")
    done = command_line("topology", "show", path)
    assert done.returncode == 0, done.stderr
    assert visible(str(path)) in done.stdout


@pytest.mark.parametrize("words", [("topology", "show"), ("profile", "show"), ("topology", "draw", "-o", "x.svg")])
@pytest.mark.parametrize("name", ["[/x]", "[bold]", "a[", "\x1b]0;x\x07"])
def test_an_argument_may_be_any_text(tmp_path, words, name):
    topology = ["--topology", name] if words[0] == "profile" else []
    done = command_line(*words, name, *topology, folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("text", [*MARKUP, *CONTROL])
def test_consoles_print_all_text_as_it_is_with_control_characters_escaped(text, monkeypatch):
    out = io.StringIO()
    with redirect_stdout(out):
        screen = console()
        screen.print(text)
        with screen.status(text) as status:
            status.update(text)
    assert out.getvalue() == f"{visible(text)}\n"


def test_streams_show_control_characters_whoever_prints():
    out, error = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(error):
        guard_streams()
        guard_streams()  # once more changes nothing
        print("a\x1b]52;c;x\x07\tb")
        console(to_error=True).print("c\x1b[31m")
    assert out.getvalue() == "a\\x1b]52;c;x\\x07\tb\n"
    assert error.getvalue() == "c\\x1b[31m\n"


def test_errors_have_no_control_characters():
    assert str(SourceError("f\x1b[31m:\x9b, line\n\tx")) == "f\\x1b[31m:\\x9b, line\n\tx"


def test_what_a_service_says_is_escaped_where_it_is_shown():
    server = socket.create_server(("127.0.0.1", 0))
    answers = [b"error: \x1b]52;c;aGk=\x07\n", b"h1 \x1b[31mh2\n"]

    def serve():
        for answer in answers:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    for code in (1, 0):
        done = command_line("topology", "query", "a:b", "--server", address)
        assert (done.returncode, "\x1b" in done.stdout + done.stderr) == (code, False)
        assert "\\x1b" in done.stdout + done.stderr
    server.close()


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@x", "\tx", "\rx", '=cmd|" /C calc"!A0'])
def test_text_that_begins_a_formula_is_none_in_csv(text):
    assert csv_cell(text).startswith("'")


@pytest.mark.parametrize("value", [-1, 2.5, None, "-1", "+2e5", "h1", ""])
def test_numbers_and_names_stay_as_they_are_in_csv(value):
    assert csv_cell(value) == value


def test_a_table_of_leaves_in_csv_has_no_formulas(tmp_path):
    (tmp_path / "f.ibnetdiscover").write_text(ibnetdiscover("=1+1"), encoding="utf-8")
    rows = list(
        csv.DictReader(
            io.StringIO(
                command_line(
                    "topology", "links", "--topology", "f.ibnetdiscover", "--by", "leaf", "--csv", folder=tmp_path
                ).stdout
            )
        )
    )
    assert any("'=1+1" in value for row in rows for value in row.values())


@pytest.mark.parametrize("control", [one for one in CONTROL if one not in "\r\x00"])  # of which no report is read
def test_pictures_are_sound_xml_whatever_names_hold(tmp_path, control):
    (tmp_path / "f.ibnetdiscover").write_text(ibnetdiscover(f"x{control}y"), encoding="utf-8")
    done = command_line("topology", "draw", "f.ibnetdiscover", "-o", "f.svg", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    ElementTree.parse(tmp_path / "f.svg")


@pytest.mark.parametrize("text", [*CONTROL, "\ud800", "\ufffe"])
def test_xml_holds_any_text_once_it_is_unmarked(text):
    ElementTree.fromstring(f"<a>{unmarked(text)}</a>")


def test_names_in_figures_are_no_formulas(tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    from topompi.inputs.figures import plain_label, save_figure

    figure = figures.Figure(layout="constrained")
    axes = figure.add_subplot(title="$\\frac", xlabel="$\\x\x1b")
    axes.plot([1, 2], [10, 1000], label="$\\bad")
    axes.set_yscale("log")
    axes.set_xticks([1, 2], [plain_label("$\\a$"), plain_label("\x1b")])
    axes.legend()
    save_figure(figure, tmp_path / "f.svg")
    ElementTree.parse(tmp_path / "f.svg")


def test_one_module_alone_makes_consoles_and_parses_no_markup():
    found = []
    for path in [*ROOT.glob("topompi/**/*.py"), *ROOT.glob("osu_like_bench/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if any(one in ("rich", "rich.console", "rich.markup", "rich.text", "rich.status") for one in names):
                found.append(path.relative_to(ROOT).as_posix())
            if isinstance(node, ast.Attribute) and node.attr in ("echo", "secho", "from_markup", "from_ansi"):
                found.append(path.relative_to(ROOT).as_posix())
    assert set(found) == {"topompi/cli/terminal.py"}


def test_escapes_are_sound_json():
    assert json.loads(visible(json.dumps({"a\x7f": "\x1b\x9b"}))) == {"a\x7f": "\x1b\x9b"}
