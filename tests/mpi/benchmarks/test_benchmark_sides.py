"""The programs of benchmarks/ start as modules."""

import re
from importlib import import_module

import pytest

from tests.support import ROOT

PROGRAM = re.compile(r"def main\(.*(ArgumentParser|network_parser)\(", re.DOTALL)  # one with options


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if PROGRAM.search(path.read_text()))
)
def test_every_program_starts_as_a_module(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name}").main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
