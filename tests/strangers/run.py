"""One package's suites in each mode, in its environment: ``python -m tests.strangers.run ENVIRONMENT NAME FILE``."""

import argparse
import importlib
import importlib.metadata
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.modes import ENVIRONMENT, LAUNCHERS, words, write_rules
from tests.support import mpi_job

from .environments import source_of
from .outcomes import lines_of, recorded, schedules_of
from .packages import ENVIRONMENTS, PACKAGES, Package, Suite

# Of mpirun's, and the table of --verbose.
NOISE = re.compile(
    r"-{9}|\[.*\] |MPI_ABORT was|with errorcode|NOTE: invoking|You may or may not|exactly when|Primary job"
    r"|a non-zero exit|mpirun detected|the job to be|  Process name|  Exit code"
    r"|topompi: |operation  |\w+ +[\d-]+ +[\d,]+ +[\d,-]+ +\w"
)
PROGRAMS = Path(__file__).with_name("programs")


def version_of(package: Package) -> str:
    """The version of the installed package."""
    try:
        return importlib.metadata.version(package.name)
    except importlib.metadata.PackageNotFoundError:
        return str(importlib.import_module(package.module).__version__)


def library() -> str:
    """Name and version of the MPI library."""
    from mpi4py import MPI

    name = {"MPICH": "MPICH", "Open MPI": "Open MPI"}[MPI.get_vendor()[0]]
    return f"{name} {'.'.join(map(str, MPI.get_vendor()[1]))}"


def what_broke(printed: str) -> str:
    """The last lines of a rank's error, without what mpirun says of its end."""
    lines = [line for line in printed.splitlines() if line and not NOISE.match(line)]
    return "\n".join(f"        {line}" for line in lines[-8:])


def job(suite: Suite, mode: str, places: dict[str, str], folder: Path, variables: dict[str, str]) -> dict[str, object]:
    """Run a suite once; its outcomes, the schedules that ran, seconds, and the end of what it said on an error."""
    folder.mkdir(parents=True)
    rules = folder.with_name(f"rules-{folder.name}")
    rules.mkdir()
    write_rules(rules, suite.forced)
    launcher = words(mode, rules)
    if mode == "schedules":
        launcher.insert(1, "--verbose")  # which says what ran
    given = [word.format(**places) for word in suite.words]
    if suite.program:
        command = given if mode == "native" else ["-m", *launcher, *given]
        into = folder
    else:
        into = folder / "outcomes"
        into.mkdir()
        command = ["-m", *launcher, str(PROGRAMS / "recorded.py"), str(into), *given]
    where = Path(suite.folder.format(**places)) if suite.folder else folder
    begun = time.monotonic()
    done = mpi_job(suite.ranks, *command, timeout=suite.seconds, env={**ENVIRONMENT, **variables}, folder=where)
    found = lines_of(done.returncode, done.stdout, suite.lines) if suite.program else recorded(into, suite.ranks)
    return {
        "outcomes": found,
        "schedules": schedules_of(done.stderr),
        "seconds": round(time.monotonic() - begun, 1),
        "said": what_broke(done.stderr) if done.returncode else "",
    }


def main() -> None:
    """Write down what became of each suite in each mode."""
    parser = argparse.ArgumentParser()
    parser.add_argument("environment")
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("--modes", default=",".join(LAUNCHERS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    package = next(one for one in PACKAGES if one.name == options.name)
    places = {"source": str(source_of(package, options.environment)), "programs": str(PROGRAMS)}
    results: dict[str, object] = {"version": version_of(package), "python": sys.version.split()[0], "mpi": library()}
    results["mpi4py"] = importlib.metadata.version("mpi4py")
    with tempfile.TemporaryDirectory() as temporary:
        # What dolfinx compiles is kept from one mode to the next.
        variables = {"XDG_CACHE_HOME": f"{temporary}/cache", **ENVIRONMENTS[options.environment].variables}
        suites = [one for one in package.suites if one.quick or not options.quick]
        results["modes"] = {
            mode: {
                f"{suite.name}, {suite.ranks} ranks": job(
                    suite, mode, places, Path(temporary) / f"{mode}-{number}", variables
                )
                for number, suite in enumerate(suites)
            }
            for mode in options.modes.split(",")
        }
    options.file.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    os.environ.pop("PYTHONHOME", None)
    main()
