"""The page of a real Slurm: its own tree, a running job on its nodes, and a waiting one with its reason."""

from __future__ import annotations

import re
import sys

from tests.bridge.test_page import Seen
from tests.slurm import slurm_cluster  # noqa: F401 - a fixture
from tests.support import ROOT

COMMAND = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-m", "topompi", "slurm", "page", "--once"]


def test_a_real_slurm_is_shown_with_the_jobs_that_run_and_wait(slurm, tmp_path):
    submit = ["sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--time=2", "--wrap=sleep 60"]
    first, second = (slurm.run([*submit, f"--nodes={nodes}"]).stdout.strip() for nodes in (3, 4))
    try:
        slurm.run(["timeout", "20", "sh", "-c", f"until squeue -h -j {first} -o %N | grep -q h; do sleep 0.2; done"])
        shown = slurm.run([*COMMAND, "-o", str(tmp_path / "page.html")])
        assert shown.returncode == 0, shown.stderr
        text = (tmp_path / "page.html").read_text()
    finally:
        slurm.run(["scancel", first, second])
    cells = [one for tag, one in Seen(text).tags if tag == "rect" and one.get("data-jobs") == first]
    assert len(cells) == 3
    rows = {row[0]: row for row in Seen(text).rows if row}
    assert rows[first][3:6] == ["3", "h[0000-0002]", "2"]
    assert rows[second][-1] in ("too few of the nodes that it could have are free", "Slurm has not considered it yet")
    assert "There is no partition door" in text
    assert re.search(r"Slurm&#x27;s own tree, which knows no parallel cables", text)
