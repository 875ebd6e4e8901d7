"""A check of the packages in a virtual environment for known vulnerabilities: ``python -m tests.audit VENV``.

The status is 1 if there are vulnerabilities. pip-audit is installed into an environment of its own. If it, or the list
of advisories, cannot be loaded, a line reports that and the status is 0, because nothing is known then.
"""

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 300
Run = Callable[[Sequence[str]], tuple[int, str, str]]


def run(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command; 124 where it does not end in time."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 124, "", f"no end within {SECONDS} s"
    return done.returncode, done.stdout, done.stderr


def audit(where: Path, python: str, call: Run = run) -> tuple[int, list[str]]:
    """The status and the lines to print.

    :param where: folder of the packages.
    :param python: of an environment for pip-audit.
    :param call: runs a command.
    """
    code, _, error = call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit>=2.7"])
    if code:
        return 0, [f"skipped: pip-audit cannot be installed: {_last(error)}"]
    words = ["--path", str(where), "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    code, output, error = call([python, "-m", "pip_audit", *words])
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 0, [f"skipped: the list of advisories cannot be reached: {_last(error)}"]
    holes = [(one, hole) for one in packages for hole in one.get("vulns", ())]
    lines = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version'}"
        for one, hole in holes
    ]
    return int(bool(holes)), [*lines, f"{len(packages)} packages, {len(holes)} known holes"]


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1][:200]


def main() -> int:
    """Look at the environment that the command line names."""
    where = next(Path(sys.argv[1]).glob("lib/python3*/site-packages"))
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        code, lines = audit(where, f"{folder}/bin/python")
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
