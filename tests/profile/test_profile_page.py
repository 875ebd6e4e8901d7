"""The page of a profile in a real browser: its contents, the texts under the pointer, and no errors."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.browser import chromium
from topompi.cli.app import app
from topompi.mpi.profile import Profile, write_profile
from topompi.mpi.profile.recording import RankRows

POINT = """<script>
const canvas = document.getElementById("map"), box = canvas.getBoundingClientRect(), said = [];
function point(source, target, size, kind = "mousemove") {
  const [x, y] = [(target + .5) / size, (source + .5) / size];
  canvas.dispatchEvent(new MouseEvent(kind, { clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
  said.push(document.getElementById("value").textContent);
}
function pick(id, value) { const one = document.getElementById(id); one.value = value; one.onchange(); }
point(SOURCE, TARGET, RANKS);
pick("count", "messages");
point(SOURCE, 0, RANKS);
pick("granularity", "host");
point(0, 1, HOSTS);
pick("granularity", "process");
point(0, 0, RANKS, "mousedown");
point(1, 1, RANKS, "mouseup");
point(0, 1, 2);
document.body.append(Object.assign(document.createElement("pre"), { id: "said", textContent: said.join("\\n") }));
</script></html>"""


def browsed(page, tmp_path, **numbers):
    """What the page says when the pointer moves, and what the browser writes to its console."""
    script = POINT
    for name, value in numbers.items():
        script = script.replace(name, str(value))
    copy = tmp_path / "copy.html"
    copy.write_text(page.replace("</html>", script))
    done = chromium(tmp_path, "--window-size=1200,2400", "--dump-dom", copy.as_uri())
    said = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert said, done.stdout[-2000:]
    return said[1].splitlines(), done.stdout


def written(tmp_path, ranks, rows, names=("one", "two"), topology="XGFT(2; 2,2; 1,1)"):
    for name in names:
        write_profile(Profile(ranks, "by hand", of_rank=rows), tmp_path / f"{name}.topoprof")
    options = ["--topology", topology, "-o", str(tmp_path / "r.html")]
    files = [str(tmp_path / f"{name}.topoprof") for name in names]
    done = CliRunner().invoke(app, ["profile", "export", *files, *options])
    assert done.exit_code == 0, done.output
    return (tmp_path / "r.html").read_text()


def test_the_pointer_shows_what_was_sent_and_the_console_stays_empty(tmp_path):
    rows = [RankRows.of_rows(rank, [(0, (rank + 1) % 8, 2, 100 + rank)]) for rank in range(8)]
    page = written(tmp_path, 8, rows)
    assert "http" not in page  # nothing is loaded
    said, text = browsed(page, tmp_path, SOURCE=1, TARGET=2, RANKS=8, HOSTS=4)
    assert said[0] == "rank 1 to rank 2: 101 bytes, 2 messages, 1 hop"
    assert said[1] == "rank 1 to rank 0: 0 bytes, 0 messages"
    assert re.fullmatch(r"\S+ to \S+: 101 bytes, 2 messages, 1 hop", said[2])
    assert said[-1] == "rank 0 to rank 1: 100 bytes, 2 messages, within hosts"
    assert text.count('class="node"') == 3  # two leaf switches and the one above
    assert 'class="link"' in text
    across = re.search(r'<div id="across">(.*?)</div>', text)[1]
    assert re.findall(r">([^<]+)</span>", across) == ["rank 0", "rank 1"]  # the part of the map that was chosen last
    for words in ("within hosts", "3 hops", "by hand", ">one<", ">two<"):
        assert words in text


def test_the_page_prints_on_two_sheets_the_map_on_the_first(tmp_path):
    rows = [RankRows.of_rows(rank, [(0, (rank + 1) % 8, 2, 100 + rank)]) for rank in range(8)]
    written(tmp_path, 8, rows)
    pdf = tmp_path / "page.pdf"
    chromium(tmp_path, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", (tmp_path / "r.html").as_uri())
    printed = pdf.read_bytes()
    assert b"/Title (What the program sent)" in printed
    assert re.findall(rb"/Type /Pages\s*/Count (\d+)", printed) == [b"2"]
    sheets = re.findall(rb"/Type /Page\s*?\n.*?endobj", printed, re.DOTALL)
    assert [b"/XObject" in sheet for sheet in sheets] == [True, False]  # the map is the one picture of pixels


@pytest.mark.long
def test_a_page_of_1024_ranks_that_all_send_to_all_is_exact(tmp_path):
    ranks = np.arange(1024)
    rows = [
        RankRows(rank, np.zeros(1023, dtype=np.int64), np.delete(ranks, rank), np.ones(1023, dtype=np.int64), peers)
        for rank, peers in ((rank, 1000 * rank + np.delete(ranks, rank)) for rank in range(1024))
    ]
    page = written(tmp_path, 1024, rows, ["run"], "XGFT(2; 8,8; 1,4)")
    said, _ = browsed(page, tmp_path, SOURCE=1000, TARGET=23, RANKS=1024, HOSTS=64)
    pairs = [re.fullmatch(r"rank (\d+) to rank (\d+): ([\d,]+) bytes, (\d) messages.*", line) for line in said]
    found = [tuple(int(one.replace(",", "")) for one in pair.groups()) for pair in pairs if pair]
    assert abs(found[0][0] - 1000) + abs(found[0][1] - 23) <= 4  # a pixel is more than one rank
    assert len(found) >= 3
    assert all(volume == (1000 * source + target) * count for source, target, volume, count in found)
