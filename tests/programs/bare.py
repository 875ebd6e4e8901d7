"""Install a wheel and run the demo as a user who has nothing but Python: ``bare.py WHEEL FOLDER``, by root.

Run in a mount namespace of its own (``unshare --mount``), where it hides all programs of the system, compilers among
them. What follows runs without any rights, with a home of its own, and outside the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

NOBODY = 65534
HIDDEN = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/root")
PLAIN = """
import pathlib, sysconfig
for part in pathlib.Path(sysconfig.get_path("purelib"), "topompi").rglob("*.so"):
    part.unlink()
"""
KEPT = ("PIP_", "SSL_", "http_proxy", "https_proxy", "no_proxy")  # how the index is reached


def hide(python: Path) -> None:
    """Put the interpreter's installation at ``python``, and nothing at the places of programs."""
    subprocess.run(["mount", "--bind", sys.base_prefix, str(python)], check=True)
    mount = "; ".join(f"mount -t tmpfs none {folder}" for folder in reversed(HIDDEN) if Path(folder).is_dir())
    subprocess.run(["sh", "-c", mount], check=True)  # mount itself is in the folder that goes last


def environment(python: Path, home: Path) -> dict[str, str]:
    """The variables of a user who has set none."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    # An interpreter looks for its own library where it was built.
    return kept | {"PATH": "/usr/bin", "HOME": str(home), "LD_LIBRARY_PATH": str(python / "lib")}


def main() -> None:
    """Hide, install, run with and without the compiled parts; a line for each step with its seconds."""
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    python, home = folder / "python", folder / "home"
    for one in (python, home):
        one.mkdir()
    os.chown(home, NOBODY, NOBODY)
    variables = environment(python, home)
    hide(python)
    first, inside = python / "bin" / f"python3.{sys.version_info.minor}", home / "env" / "bin"
    steps: dict[str, list[str | Path]] = {
        "set-up": [first, "-m", "venv", "--without-pip", home / "env"],
        "install": [first, "-m", "pip", "--python", inside / "python", "install", "--quiet", wheel],
        "demo": [inside / "topompi", "demo"],
        "without compiled parts": [inside / "python", "-c", PLAIN],
        "plain demo": [inside / "topompi", "demo", "-o", "plain"],
    }
    for name, words in steps.items():
        start = time.monotonic()
        command = [str(word) for word in words]
        subprocess.run(command, check=True, cwd=home, env=variables, user=NOBODY, group=NOBODY, extra_groups=[])
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
