"""The systemd unit that `topompi topology serve --print-unit` prints, and the service's messages to systemd."""

import os
import shlex
import shutil
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.services import REPORT, TABLES
from topompi.cli.app import app
from topompi.topology.service import unit

SAFE = 25  # tenths of systemd's exposure, which ends at 10: "OK" up to 2.5


def printed(monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, list[str]]:
    """The values of each key of the unit, in order."""
    words = [
        "topology",
        "serve",
        "--topology",
        os.path.relpath(REPORT),
        f"--lfts={os.path.relpath(TABLES)}",
        *options,
        "--print-unit",
    ]
    monkeypatch.setattr(sys, "argv", ["topompi", *words])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found: dict[str, list[str]] = {"text": [done.stdout]}
    for line in done.stdout.splitlines():
        key, equals, value = line.partition("=")
        found.setdefault(key, []).extend([value] if equals else [])
    return found


def test_the_unit_starts_the_same_service_from_anywhere(monkeypatch) -> None:
    found = printed(monkeypatch, "--watch", "--listen", "unix:/run/topompi/topology.sock", "--set", "clients=100")
    tables = ["--lfts=" + str(TABLES), "--watch", "--listen", "unix:/run/topompi/topology.sock", "--set", "clients=100"]
    start = [sys.executable, "-P", "-m", "topompi", "topology", "serve", "--topology", str(REPORT), *tables]
    assert shlex.split(found["ExecStart"][0]) == start
    assert found["RuntimeDirectory"] == ["topompi"]
    assert found["LimitNOFILE"] == [str(100 + unit.OWN_FILES)]


@pytest.mark.parametrize(
    ("options", "wanted", "others"),
    [
        (
            ["--listen", "unix:/run/topompi/t.sock"],
            {"PrivateNetwork=yes", "DynamicUser=yes"},
            {"IPAddressDeny", "User"},
        ),
        ([], {"IPAddressDeny=any", "IPAddressAllow=localhost", "DynamicUser=yes"}, {"PrivateNetwork"}),
        (["--listen", "0.0.0.0:7471"], {"DynamicUser=yes"}, {"PrivateNetwork", "IPAddressDeny"}),
        (["--command", "sh -c 'a > b'"], {"User=root", f"ReadWritePaths={REPORT.parent}"}, {"DynamicUser"}),
    ],
)
def test_the_unit_takes_away_what_its_addresses_and_its_command_do_not_need(
    monkeypatch, tmp_path, options: list[str], wanted: set[str], others: set[str]
) -> None:
    found = printed(monkeypatch, *options)
    lines = found["text"][0].splitlines()
    assert wanted <= set(lines)
    assert not others & set(found)
    assert "PrivateUsers" not in found  # who asks would be nobody
    listens = not any(option.startswith("unix:") for option in options)
    assert ("AF_NETLINK" in found["RestrictAddressFamilies"][0]) == listens
    if shutil.which("systemd-analyze") is None:
        return
    file = tmp_path / "topompi-topology.service"
    file.write_text(found["text"][0])
    for check in (["verify", "--man=no"], ["security", "--offline=true", f"--threshold={SAFE}", "--no-pager"]):
        done = subprocess.run(["systemd-analyze", *check, str(file)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        assert check[0] != "verify" or not done.stderr


def test_systemd_is_told_when_the_service_is_ready_alive_and_at_its_end(tmp_path) -> None:
    path = tmp_path / "notify"
    words = [
        sys.executable,
        "-m",
        "topompi",
        "topology",
        "serve",
        "--topology",
        "xgft:2,2;1,1",
        "--listen",
        "127.0.0.1:0",
    ]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(path))
        heard.settimeout(60)
        env = {**os.environ, "NOTIFY_SOCKET": str(path)}
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env) as process:
            try:
                assert heard.recv(99) == b"READY=1"
                assert heard.recv(99) == b"WATCHDOG=1"
                process.terminate()
                assert heard.recv(99) in (b"WATCHDOG=1", b"STOPPING=1")
                assert process.wait(20) == 0
            finally:
                process.kill()
