"""``python -m tests.strangers``: make environments, try packages in each mode, compare with what happens natively."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from .environments import ROOT, MissingError, folders, install, python_of
from .packages import DIFFERENCES, PACKAGES, Package
from .report import table, verdicts

RESULTS = ROOT / "build" / "strangers"
LIMIT = 7200  # seconds for one package in all modes; each of its jobs has a limit of its own


def try_package(package: Package, environment: str, quick: bool, modes: str) -> str:
    """Install a package and run its suites; the line that tells of it.

    :raises MissingError: if it is not to be had here.
    :raises RuntimeError: if what runs it fails itself.
    """
    begun = time.monotonic()
    install(package, environment)
    installed = time.monotonic()
    file = RESULTS / f"{environment}-{package.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [str(python_of(environment)), "-m", "tests.strangers.run", environment, package.name, str(file)]
    more = (["--quick"] if quick else []) + (["--modes", modes] if modes else [])
    done = subprocess.run(
        [*command, *more], cwd=ROOT, timeout=LIMIT, capture_output=True, text=True, env={**folders(), **os.environ}
    )
    if done.returncode:
        raise RuntimeError(f"its runner ended with status {done.returncode}: {done.stderr[-3000:]}")
    took = f"installed in {installed - begun:.0f} s, ran in {time.monotonic() - installed:.0f} s"
    return f"{package.name} {json.loads(file.read_text())['version']} ({environment}): {took}"


def chosen(options: argparse.Namespace) -> list[tuple[str, Package]]:
    """Environments and packages that the options name."""
    only = options.only.split(",") if options.only else [one.name for one in PACKAGES]
    if unknown := sorted(set(only) - {one.name for one in PACKAGES}):
        raise SystemExit(f"expecting packages of tests/strangers/packages.py, got {', '.join(unknown)}")
    return [
        (environment, package)
        for environment in options.environments.split(",")
        for package in PACKAGES
        if package.name in only and environment in package.environments
        if not options.quick or any(suite.quick for suite in package.suites)
    ]


def main() -> int:
    """Try packages, tell what differs; status 1 if anything does without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__)
    parser.add_argument("--environments", default="debian,openmpi", help="of debian, openmpi, mpich")
    parser.add_argument("--only", default="", help="names of packages")
    parser.add_argument("--modes", default="", help="of native, default, virtual, schedules")
    parser.add_argument("--quick", action="store_true", help="what takes some minutes")
    parser.add_argument("--markdown", type=Path, help="write the tables of all results into this page, and run nothing")
    options = parser.parse_args()
    if options.markdown:
        options.markdown.write_text(table(options.markdown.read_text(), RESULTS))
        return 0
    passed, failed, skipped = 0, 0, 0
    for environment, package in chosen(options):
        try:
            print(try_package(package, environment, options.quick, options.modes), flush=True)
        except MissingError as missing:
            skipped += 1
            print(f"{package.name} ({environment}): skipped: {missing}", flush=True)
            continue
        except RuntimeError as error:
            failed += 1
            print(f"{package.name} ({environment}): {error}", flush=True)
            continue
        good, bad = verdicts(
            json.loads((RESULTS / f"{environment}-{package.name}.json").read_text()), package, DIFFERENCES
        )
        for told in bad:
            print("  " + told, flush=True)
        passed, failed = passed + good, failed + len(bad)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
