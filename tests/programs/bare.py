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
KEPT = ("PIP_", "SSL_", "http_proxy", "https_proxy", "no_proxy")  # how the index is reached


def hide(python: Path) -> None:
    """Put the interpreter's installation at ``python``, and nothing at the places of programs."""
    subprocess.run(["mount", "--bind", sys.base_prefix, str(python)], check=True)
    mount = "; ".join(f"mount -t tmpfs none {folder}" for folder in reversed(HIDDEN) if Path(folder).is_dir())
    subprocess.run(["sh", "-c", mount], check=True)  # one shell, which is loaded before its folder is gone


def main() -> None:
    """Hide, install, run; a line for each step with its seconds."""
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    python, home = folder / "python", folder / "home"
    for one in (python, home):
        one.mkdir()
    os.chown(home, NOBODY, NOBODY)
    environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    environment |= {"PATH": "/usr/bin", "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment["LD_LIBRARY_PATH"] = str(python / "lib")  # an interpreter finds its own library where it was built
    hide(python)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inside = home / "env" / "bin"
    steps = [
        [python / "bin" / version, "-m", "venv", home / "env"],
        [inside / "python", "-m", "pip", "install", "--quiet", wheel],
        [inside / "topompi", "demo"],
    ]
    for step in steps:
        start = time.monotonic()
        subprocess.run(
            [str(word) for word in step],
            check=True, cwd=home, env=environment, user=NOBODY, group=NOBODY, extra_groups=[], umask=0o077,
        )  # fmt: skip
        print(f"step {step[1]}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
