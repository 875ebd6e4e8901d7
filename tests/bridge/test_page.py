"""The page of a Slurm cluster: jobs and their colours, shared links, waiting jobs in words, escaping, refreshing."""

import json
import os
import re
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from itertools import combinations, pairwise
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slurm import slurm_cluster  # noqa: F401 - a fixture
from tests.support import ROOT, command_line, examples
from topompi.errors import SourceError
from topompi.inputs.hostlist import compress
from topompi.machine.daemon.pages import served
from topompi.machine.jobs.isolation import check
from topompi.machine.slurm.mark import Mark
from topompi.machine.slurm.page import holdings
from topompi.machine.slurm.page import live as livepage
from topompi.machine.slurm.page.holdings import Holdings, Site, colours_of
from topompi.machine.slurm.page.live import LivePage, last_lines
from topompi.machine.slurm.page.whole import NO_LOG, page, sections
from topompi.machine.slurm.page.words import reason_words, span_words
from topompi.machine.slurm.snapshot import SlurmJob, SlurmSnapshot
from topompi.topology import load
from topompi.views.picture.cells import JOB_COLOURS, MARKED

NOW = 1_790_000_000
SPEC = "xgft:4,4;1,2"  # 4 leaf switches of 4 hosts and 2 links up
SITE = Site(load(SPEC).routes, SPEC)
HOSTS = SITE.names
LARGE = Site(load("xgft:36,36;1,18").routes, "large")
UP = {"door": False, "run": True, "all": True}
IDLE = {host: frozenset({"idle"}) for host in HOSTS}
ALLOWED = {
    *(
        "html",
        "meta",
        "link",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "span",
        "div",
        "section",
        "p",
        "ul",
        "li",
    ),
    *("li", "b", "i", "small", "table", "thead", "tbody", "tr", "th", "td", "button", "script"),
    *("svg", "rect", "path", "text"),
}


class Seen(HTMLParser):
    """The elements of a page: tags with their attributes, and the text within each row of a table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.words, self._in_row = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._in_row = tag not in ("p", "h2") and (self._in_row or tag == "td")

    def handle_data(self, data):
        self.words.append(data)
        if self.rows and self.rows[-1] and self._in_row:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag):
        self._in_row = self._in_row and tag not in ("table", "tr")


def running(number, nodes, **more):
    hosts = tuple(HOSTS[node] for node in nodes)
    times = {"start": NOW - 60, "end": NOW + 600}
    return SlurmJob(str(number), "run", "RUNNING", "None", len(hosts), **times, user="ann", hosts=hosts, **more)


def waiting(number, partition="door", reason="PartitionDown", **more):
    return SlurmJob(str(number), partition, "PENDING", reason, **{"nodes": 2, "submit": NOW - 90, "user": "bob"} | more)


def state(*jobs, states=None, up=None):
    return SlurmSnapshot(NOW, jobs, IDLE | (states or {}), UP if up is None else up)


def section(name, snapshot, log=None, **more):
    return sections(snapshot, Holdings(snapshot, SITE), SITE, log, **more)[name]


def words_for(job, *others):
    """Return the page's words for the reason for which a job waits."""
    return next(row[-1] for row in Seen(section("waiting", state(job, *others))).rows if row[:1] == [job.id])


@st.composite
def placed(draw):
    """Nodes of some jobs, which share no nodes."""
    order, sizes = draw(st.permutations(range(16))), draw(st.lists(st.integers(1, 6), max_size=6))
    ends = np.cumsum([0, *sizes]).tolist()
    return [sorted(order[low:high]) for low, high in pairwise(ends) if high <= 16]


@examples(40)
@given(placed())
def test_every_running_job_has_its_colour_on_its_nodes_and_in_the_list(jobs):
    snapshot = state(*(running(7 + at, nodes) for at, nodes in enumerate(jobs)))
    text, colours = page(snapshot, SITE), Holdings(snapshot, SITE).colours
    seen = Seen(text)
    cells = Counter((one["data-jobs"], one["fill"]) for tag, one in seen.tags if tag == "rect" and "data-jobs" in one)
    assert cells == {(str(7 + at), colours[str(7 + at)]): len(nodes) for at, nodes in enumerate(jobs)}
    assert len(set(colours.values())) == len(jobs)
    for name, colour in colours.items():
        assert f'<i style="background:{colour}"></i>{name}</span>' in section("running", snapshot)


@examples(60)
@given(placed())
def test_the_shared_links_are_those_of_the_check_in_the_list_and_in_the_picture(jobs):
    snapshot = state(*(running(7 + at, nodes) for at, nodes in enumerate(jobs)))
    found = check(dict(enumerate(jobs)), SITE.cluster.links)
    rows = Seen(section("shared", snapshot)).rows[1:]
    wanted = {(str(7 + a), str(7 + b)): len(links) for (a, b), links in found.pairs.items()}
    assert {(row[0], row[1]): int(row[2]) for row in rows} == wanted
    fabric = SITE.routes.fabric
    ends = {
        frozenset((int(fabric.link_source[link]), int(fabric.link_target[link])))
        for links in found.pairs.values() for link in links.tolist()
    }  # fmt: skip
    seen = Seen(page(snapshot, SITE))
    red = [one for tag, one in seen.tags if tag == "path" and one["stroke"] == MARKED]
    assert len(red) == len(ends)
    sharing = {name for one in red for name in one["data-jobs"].split()}
    assert sharing == {name for pair in wanted for name in pair}
    assert f"<b>{len(wanted):,}</b> pair" in section("facts", snapshot)


def test_jobs_that_share_a_node_are_a_stripe_each_and_listed_with_the_node():
    seen = Seen(page(state(running(1, [0, 1]), running(2, [1, 2])), SITE))
    stripes = [one["fill"] for tag, one in seen.tags if tag == "rect" and one.get("data-jobs") == "1 2"]
    assert stripes == [JOB_COLOURS[0], JOB_COLOURS[1]]
    assert ["1", "2", "", f"they share 1 node: {HOSTS[1]}"] in seen.rows


def test_jobs_keep_their_colours_and_new_ones_take_those_that_are_least_used():
    before = colours_of(["1", "2", "3"], {})
    after = colours_of(["4", "3", "1", "5"], before)
    assert {name: after[name] for name in ("1", "3")} == {name: before[name] for name in ("1", "3")}
    assert after["4"] == before["2"]
    many = colours_of(map(str, range(40)), {})
    assert max(Counter(many.values()).values()) - min(Counter(many.values()).values()) <= 1


def test_drained_and_down_nodes_are_crossed_out_and_listed_with_the_jobs_on_them():
    states = {HOSTS[1]: frozenset({"draining"}), HOSTS[5]: frozenset({"down*"}), HOSTS[0]: frozenset({"allocated"})}
    snapshot = state(running(3, [0, 1]), states=states)
    seen = Seen(page(snapshot, SITE))
    crossed = re.findall(r"<path [^>]*><title>(h[^<:]+): ([^<]*)</title>", page(snapshot, SITE))
    assert crossed == [(HOSTS[1], "job 3, ann; draining"), (HOSTS[5], "down*")]
    assert ["draining", "1", HOSTS[1], "3"] in seen.rows
    assert ["down*", "1", HOSTS[5], ""] in seen.rows
    assert "All nodes take jobs." in section("closed", state())


def test_nodes_that_only_one_of_fabric_and_slurm_has_are_told():
    known = {host: IDLE[host] for host in HOSTS[1:]}
    elsewhere = SlurmJob("9", "all", "RUNNING", hosts=("x1", HOSTS[2]), start=NOW, user="ann")
    snapshot = SlurmSnapshot(NOW, (elsewhere, SlurmJob("8", "all", "RUNNING", hosts=("x2",))), known, UP)
    text = page(snapshot, SITE)
    assert "Nodes outside of this fabric are held by 2 jobs: 9, 8." in text
    assert ["no node of Slurm", "1", HOSTS[0], ""] in Seen(text).rows
    assert "<b>1</b> jobs run" in text


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (waiting(1), "first at the door; starts as soon as enough nodes suit it"),
        (waiting(1, priority=0, reason="JobHeldUser"), "its user holds it"),
        (waiting(1, reason="Dependency"), "another job has to end first"),
        (waiting(1, "all", "Resources"), "too few of the nodes that it could have are free"),
        (waiting(1, "all", "ReqNodeNotAvail, UnavailableNodes:h1", mark=Mark(left="nodelist")),
         "left to Slurm, because its user chose the nodes; a node that it asks for is down, drained or reserved"),
        (waiting(1, "run", "None", wanted="h[1-2]", mark=Mark(moved=NOW - 2)),
         "Slurm starts it on h[1-2], which it was given 2 s ago; Slurm has not considered it yet"),
        (waiting(1, mark=Mark(tries=2, until=NOW + 20)),
         "first at the door; starts as soon as enough nodes suit it; did not start on nodes that it was given: "
         "2 times; tried again in 20 s"),
        (waiting(1, mark=Mark(promise=compress(HOSTS[:2]))),
         f"first at the door; promised {compress(HOSTS[:2])}, free in 10 min at the latest"),
        (waiting(1, mark=Mark(promise=HOSTS[9])), f"first at the door; promised {HOSTS[9]}, which no job holds now"),
        (waiting(1, mark=Mark(promise="h[")), "first at the door; promised h[, which are no nodes"),
        (waiting(1, "all", "NewReason"), "NewReason"),
    ],
)  # fmt: skip
def test_a_waiting_job_is_told_its_reason_in_plain_words(job, words):
    assert words_for(job, running(5, [0, 3])) == words


def test_jobs_at_the_door_know_how_many_are_before_them_and_equal_tasks_are_one_row():
    tasks = [waiting(f"4_{task}", array="4", priority=5) for task in (0, 1, 2, 7)]
    rows = Seen(section("waiting", state(waiting(6, priority=1), *tasks, waiting(3, priority=9)))).rows[1:]
    assert [(row[0], row[-1].partition(";")[0]) for row in rows] == [
        ("3", "first at the door"), ("4_[0-2,7]", "1 job before it at the door"), ("6", "5 jobs before it at the door")
    ]  # fmt: skip


def test_the_page_says_whether_the_door_is_down_up_or_missing():
    assert "Partition door is down" in section("facts", state())
    up = state(waiting(1, reason="Resources"), up={"door": True})
    assert "Partition door is up: Slurm itself" in section("facts", up)
    assert "too few of the nodes" in section("waiting", up)
    assert "There is no partition gate" in section("facts", state(), door="gate")


def test_a_job_left_to_slurm_has_the_reason_in_plain_words_in_the_log():
    line = json.dumps({"time": "x", "level": "info", "event": "left to Slurm", "job": "5", "why": "nodelist"})
    assert Seen(section("log", state(), [line])).rows[1:] == [["x", "left to Slurm", "job 5; its user chose the nodes"]]


def test_the_log_is_shown_newest_first_with_warnings_marked_and_other_lines_as_they_are():
    event = {"time": "2026-09-21T14:13:10.500Z", "level": "info", "event": "placed", "job": "7", "why": "starts on h1"}
    lines = [
        "Traceback:",
        json.dumps(event),
        json.dumps(event | {"level": "warning", "event": "refused", "pairs": [1]}),
        "",
    ]
    text = section("log", state(), lines)
    assert Seen(text).rows[1:] == [
        ["10 s", "refused", "job 7; starts on h1; pairs [1]"], ["10 s", "placed", "job 7; starts on h1"],
        ["", "", "Traceback:"],
    ]  # fmt: skip
    assert text.count("class=bad") == 1
    assert NO_LOG in page(state(), SITE)
    assert "The bridge&#x27;s log is empty." in section("log", state(), [])


def test_the_end_of_a_long_log_is_read_and_a_missing_one_is_told(tmp_path):
    lines = [json.dumps({"time": "t", "level": "info", "event": f"e{number}"}) for number in range(5_000)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    found, _ = last_lines(tmp_path / "log")
    assert found == lines[-len(found) :]
    assert 1_000 < len(found) < 5_000
    assert last_lines(None) == (None, NO_LOG)
    os.mkfifo(tmp_path / "fifo")
    for name, words in (("none", "cannot be read: No such file"), ("fifo", "expecting a regular file, got a FIFO")):
        missing, why = last_lines(tmp_path / name)
        assert missing is None
        assert why.startswith(f"The bridge's log: {tmp_path / name}: {words}")


HOSTILE = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "__LOG__", "</style><b>", "'&lt;"]),
)


@examples(100)
@given(st.lists(HOSTILE, min_size=10, max_size=10), st.lists(HOSTILE, max_size=4))
def test_texts_of_slurm_and_of_the_log_stay_texts(texts, lines):
    a, b, c, d, e, f, g, h, i, j = texts
    mark = Mark(left=a, promise=b)
    one = SlurmJob("1" + c, d, "RUNNING" + j, e, hosts=HOSTS[:3], user=f, start=NOW, mark=mark)
    snapshot = state(
        one, running(2, [2, 5]), waiting(f"4{g}", d, e, user=f, wanted=h, mark=Mark(moved=5, left=a)),
        waiting(5, user=f, mark=mark), states={HOSTS[4]: frozenset({i})}, up={"door": False, d: True},
    )  # fmt: skip
    log = [*lines, json.dumps({"time": a, "level": b, "event": c, d: e, "more": {f: [g]}})]
    text = page(snapshot, SITE, log, no_log=h)
    seen, plain = Seen(text), Seen(page(state(running(1, [0]), running(2, [1])), SITE))
    assert {tag for tag, _ in seen.tags} <= ALLOWED
    names = {name for _, attributes in seen.tags for name in attributes}
    assert names <= {name for _, attributes in plain.tags for name in attributes} | {
        "class",
        "title",
        "style",
        "data-jobs",
    }
    assert [tag for tag, _ in seen.tags].count("script") == 1


def test_a_browser_may_run_only_the_script_of_the_page_and_load_nothing():
    text = page(state(), SITE)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    policy = next(one["content"] for tag, one in Seen(text).tags if tag == "meta" and "http-equiv" in one)
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r'\b(src|href)="(?!data:)', text)


def busy_site(site, size=7):
    """A state of a full machine, whose jobs of some nodes reach over leaf switches."""
    jobs = [
        SlurmJob(str(at), "run", "RUNNING", "None", size, start=NOW - 5, end=NOW + 5, user="ann",
                 hosts=tuple(site.names[node] for node in range(at, len(site.names), len(site.names) // size)))
        for at in range(len(site.names) // size)
    ]  # fmt: skip
    queue = [waiting(10_000 + at, priority=at + 1) for at in range(5_000)]
    return SlurmSnapshot(NOW, (*jobs, *queue), {name: frozenset({"allocated"}) for name in site.names}, UP)


def test_a_page_of_1296_nodes_is_below_a_megabyte():
    snapshot, _ = busy_site(LARGE), LARGE.cluster
    live = LivePage(lambda: snapshot, LARGE)
    assert len(live.text()) < 1_000_000
    assert len(live.answers["/data"]()[1]) < 500_000
    assert len(Holdings(snapshot, LARGE).conflicts) > 1_000
    assert "and 4,700 more" in live.text()


def test_the_picture_of_the_documentation_is_the_page_s():
    """After a change of the drawing: write the text of ``drawn`` to the file."""
    states = {HOSTS[15]: frozenset({"drained"})}
    jobs = running(12, [0, 1, 4, 5]), running(13, [8, 9, 10]), running(14, [2, 3, 6]), running(15, [12, 13])
    drawn = Holdings(state(*jobs, states=states), SITE).picture()
    assert (ROOT / "docs" / "figures" / "slurm-page.svg").read_text() == drawn
    assert sum("shared by jobs 12, 14" in line for line in drawn.splitlines()) == 4


class Changing:
    """A Slurm whose answers are given one after another, the last one for ever; an error is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, SourceError):
            raise answer
        return answer


def test_the_picture_is_drawn_anew_only_if_jobs_or_closed_nodes_changed(monkeypatch):
    drawn, picture = [], Holdings.picture
    monkeypatch.setattr(Holdings, "picture", lambda self: drawn.append(1) or picture(self))
    first, later = state(running(1, [0])), SlurmSnapshot(NOW + 9, state(running(1, [0]), waiting(2)).jobs, IDLE, UP)
    closed = state(running(1, [0]), states={HOSTS[8]: frozenset({"drained"})})
    live = LivePage(Changing(first, first, later, closed, state(running(2, [0]))), SITE, every=0)
    digests = [json.loads(live.answers["/data"]()[1])["picture"] for _ in range(5)]
    assert len(drawn) == 3
    assert [digests.index(one) for one in digests] == [0, 0, 0, 3, 4]
    assert livepage.digest(live.answers["/picture"]()[1]) == digests[-1]


def test_shared_links_are_searched_again_only_if_jobs_or_their_nodes_changed(monkeypatch):
    asked, search = [], holdings.shared_links
    monkeypatch.setattr(holdings, "shared_links", lambda *given: asked.append(1) or search(*given))
    same, other = state(running(1, [0, 4]), running(2, [2, 6])), state(running(1, [0, 4]), running(2, [2]))
    live = LivePage(Changing(same, same, other, same), SITE, every=0)
    shown = [json.loads(live.answers["/data"]()[1])["sections"]["shared"] for _ in range(4)]
    assert len(asked) == 3
    assert [one == shown[0] for one in shown] == [True, True, False, True]


def test_without_an_answer_the_last_state_stays_with_the_problem_and_its_beginning():
    gone = SourceError("squeue: expecting exit code 0, got 1: <b>no controller</b>")
    live = LivePage(Changing(state(running(1, [0])), gone, gone, state(running(2, [1]))), SITE, every=0)
    good, bad, still, again = (json.loads(live.answers["/data"]()[1]) for _ in range(4))
    assert good["problem"] == again["problem"] == ""
    assert bad["problem"] == f"Slurm does not answer, and the state below is old: {gone}"
    assert bad["sections"] == good["sections"] != again["sections"]
    assert bad["since"] == still["since"] > NOW
    with pytest.raises(SourceError, match="no controller"):
        LivePage(Changing(gone), SITE).require()


def test_browsers_together_ask_slurm_once_per_interval():
    asked = []
    live = LivePage(lambda: asked.append(1) or state(), SITE, every=60)
    for path in ("/", "/data", "/picture", "/data"):
        live.answers[path]()
    assert len(asked) == 1


def test_the_server_knows_three_paths_and_only_get():
    with served(("127.0.0.1", 0), LivePage(lambda: state(running(1, [0])), SITE).answers) as port:
        address = f"http://127.0.0.1:{port}"
        assert "<!DOCTYPE html>" in urlopen(f"{address}/").read().decode()
        assert urlopen(f"{address}/picture").headers["Content-Type"].startswith("image/svg+xml")
        for path, method, code in (("/other", "GET", 404), ("/data", "POST", 501), ("/data", "PUT", 501)):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(address + path, b"" if method != "GET" else None, method=method))
            assert refused.value.code == code


@pytest.mark.parametrize(
    ("host", "code"),
    [("evil.example", 403), ("evil.example:80", 403), ("localhost:1", 200), ("127.0.0.2", 200), ("[::1]:8086", 200),
     ("[::1]", 200), ("10.1.2.3:8086", 403), ("", 403)],
)  # fmt: skip
def test_at_a_loopback_address_only_requests_for_this_machine_are_answered(host, code):
    """A page of the web may have a name that leads to 127.0.0.1."""
    with served(("127.0.0.1", 0), {"/": lambda: ("text/plain", "x")}) as port:
        request = Request(f"http://127.0.0.1:{port}/", headers={"Host": host})
        if code == 200:
            assert urlopen(request).status == code
        else:
            with pytest.raises(HTTPError) as refused:
                urlopen(request)
            assert refused.value.code == code


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0, "0 s"), (59, "59 s"), (61, "1 min"), (3_600, "1 h"), (7_505, "2 h 5 min"), (90_000, "1 d 1 h")],
)
def test_lengths_of_time_have_one_unit_or_two(seconds, words):
    assert span_words(seconds) == words


def test_a_reason_with_further_words_has_the_meaning_of_its_first():
    pairs = combinations(("DependencyNeverSatisfied", "Dependency", "JobHeldUser", "JobHeldAdmin"), 2)
    assert all(reason_words(one) != reason_words(other) for one, other in pairs)
    assert reason_words("AssocGrpNodeLimit") == "a limit of its account or user"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expecting squeue on this machine"),
        (["--listen", "nowhere"], "expecting an address such as"),
        (["-o", "x.html"], "-o: expecting --once beside it"),
    ],
)
def test_the_command_says_what_is_missing_in_one_line(monkeypatch, words, told):
    monkeypatch.setenv("PATH", "/nowhere")
    done = command_line("slurm", "page", "--topology", SPEC, *words)
    assert done.returncode == 1
    assert told in done.stderr or "squeue" in done.stderr
    assert done.stderr.count("\n") == 1


# --- The page of a real Slurm: its own tree, a running job on its nodes, and a waiting one with its reason.


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
