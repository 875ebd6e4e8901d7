"""The live page in a real browser: it refreshes itself, keeps the reader's place, and tells what does not answer."""

import json
import re
from html import unescape

import pytest

from tests.bridge.test_page import IDLE, LARGE, NOW, SITE, UP, Changing, running, state, waiting
from tests.browser import chromium
from topompi.errors import SourceError
from topompi.machine.daemon.pages import served
from topompi.machine.slurm.page.live import LivePage
from topompi.machine.slurm.snapshot import SlurmJob, SlurmSnapshot

# A reader's zoom, drag and scroll, each before the refreshes, and all that is seen after them.
READER = """<script>
const frame = at("frame"), place_of = () => svg.querySelector('.node[data-node="1"]').getBoundingClientRect();
const old = place_of(), where = { bubbles: true, clientX: old.x + 2, clientY: old.y + 2 };
svg.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: -1, ctrlKey: true, cancelable: true }));
svg.dispatchEvent(new WheelEvent("wheel", { ...where, deltaY: -1, cancelable: true }));  // scrolls, and does not zoom
const chosen = svg.getAttribute("viewBox"), zoomed = box[2] / all[2];
const kept = Math.abs(place_of().x - old.x) + Math.abs(place_of().y - old.y), first = svg;
at("waiting").scrollTop = 100;
scrollTo(0, 200);
setTimeout(() => {
  const cell = svg.querySelector("rect[data-jobs]");
  cell.dispatchEvent(new PointerEvent("pointermove", where));
  const tip = at("tip").textContent, near = document.querySelectorAll("rect.near").length;
  const faded = [...svg.querySelectorAll("rect[data-jobs]")].filter(one => getComputedStyle(one).opacity < .5).length;
  at("all").click();
  const seen = { chosen, zoomed, kept, is_new: first !== svg, box: svg.getAttribute("viewBox") === all.join(" "),
    later: box_later, scrolled: at("waiting").scrollTop, page: scrollY, tip, near, faded, stale:
    document.body.classList.contains("stale"), problem: at("problem").textContent, moment: at("moment").textContent,
    running: at("running").innerText, wide: document.documentElement.scrollWidth - innerWidth };
  const pre = Object.assign(document.createElement("pre"), { id: "said", textContent: JSON.stringify(seen) });
  document.body.append(pre);
}, 3000);
let box_later = null;
setTimeout(() => { box_later = svg.getAttribute("viewBox"); }, 2900);
</script>
</body>"""


def read(live, tmp_path, failing=()):
    """Return the texts of the live page after some refreshes, and the lines of the browser's console."""
    page = live.answers["/"]()[1].replace("</body>", READER)
    page = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page)

    def broken():
        raise ValueError("broken")

    answers = {**live.answers, "/": lambda: ("text/html", page)} | dict.fromkeys(failing, broken)
    with served(("127.0.0.1", 0), answers) as port:
        done = chromium(tmp_path, "--window-size=1300,700", "--dump-dom", f"http://127.0.0.1:{port}/")
    said = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    return json.loads(unescape(said[1])), "CONSOLE" in done.stderr


def many(site, first):
    """Two states of a machine with jobs on all nodes, one of which has ended between them."""
    size, names = len(site.names) // 8, site.names
    jobs = [
        SlurmJob(str(first + at), "run", "RUNNING", "None", size, start=NOW, user="ann", hosts=names[at::8])
        for at in range(8)
    ]
    queue = [waiting(100 + at, priority=99 - at) for at in range(60)]
    idle = {name: frozenset({"idle"}) for name in names}
    return SlurmSnapshot(NOW, (*jobs, *queue), idle, UP), SlurmSnapshot(NOW + 5, (*jobs[1:], *queue), idle, UP)


@pytest.mark.parametrize("site", [SITE, LARGE], ids=["16 nodes", "1296 nodes"])
def test_the_page_refreshes_itself_and_keeps_zoom_and_scroll(site, tmp_path):
    before, after = many(site, 7)
    seen, has_errors = read(LivePage(Changing(before, before, after), site, every=0.05), tmp_path)
    assert not has_errors
    assert (seen["stale"], seen["problem"]) == (False, "")
    assert "asked again every 0.05 s" in seen["moment"]
    assert seen["is_new"]  # another picture, without the job that has ended
    assert re.findall(r"^(\d+)\s", seen["running"], re.MULTILINE) == [str(7 + at) for at in range(1, 8)]
    assert seen["zoomed"] == pytest.approx(0.8)
    assert seen["kept"] < 3  # pixels: what the pointer is on stays there
    assert seen["later"] == seen["chosen"]
    assert seen["box"]  # the button shows all again
    assert (seen["scrolled"], seen["page"]) == (100, 200)
    size = len(site.names) // 8
    assert re.fullmatch(r"h\d+: job \d+, ann", seen["tip"])
    assert (seen["near"], seen["faded"]) == (size, 6 * size)
    assert seen["wide"] <= 0


def test_the_page_tells_since_when_slurm_does_not_answer_and_keeps_the_last_state(tmp_path):
    gone = SourceError("squeue: expecting exit code 0, got 1: <b>no controller</b>")
    seen, has_errors = read(LivePage(Changing(state(running(7, [0])), gone), SITE, every=0.05), tmp_path)
    assert not has_errors
    assert seen["stale"]
    assert re.fullmatch(
        f"Slurm does not answer, and the state below is old: {gone} \\(since [0-9:]+ [AP]M\\)", seen["problem"]
    )
    assert re.search(r"^7\s+ann", seen["running"], re.MULTILINE)


def test_the_page_tells_since_when_its_own_server_does_not_answer(tmp_path):
    seen, _ = read(LivePage(lambda: state(running(7, [0])), SITE, every=0.05), tmp_path, failing=["/data"])
    assert seen["stale"]
    assert re.match(r"The server of this page has not answered since [0-9:]+ [AP]M: 500", seen["problem"])


def test_a_page_that_was_written_once_asks_nobody(tmp_path):
    live = LivePage(lambda: SlurmSnapshot(NOW, (), IDLE, UP), SITE)
    (tmp_path / "page.html").write_text(live.text(every=0))
    done = chromium(tmp_path, "--dump-dom", (tmp_path / "page.html").as_uri())
    assert "CONSOLE" not in done.stderr
    assert re.search(r'<span id="moment">state of [0-9/]+, [0-9:]+ [AP]M</span>', done.stdout)
