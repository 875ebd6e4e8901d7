"""The page of a Slurm cluster: who runs where, which links jobs share, who waits for what, and the bridge's last deeds.

All texts of Slurm and of the log are escaped. The page's own script is the only one that a browser may run on it.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from ....errors import SourceError
from ....inputs import read_text
from ..snapshot import SlurmJob, SlurmSnapshot
from .events import events
from .holdings import Holdings, Site
from .markup import MOST_ROWS, Html, bad, hosts, paragraph, table, text
from .waiting import waiting
from .words import LEFT, span_words

__all__ = ["page", "sections", "whole_page"]

MOST_LINKS = 3  # links, or jobs, that a cell of a table names
NO_LOG = "No bridge log was given: --log FILE names it."
_PAGE = Path(__file__).with_name("page.html")
_PLACE = re.compile(r"__([A-Z]+)__")  # in the template


def page(
    snapshot: SlurmSnapshot, site: Site, log: Sequence[str] | None = None, no_log: str = NO_LOG, door: str = "door"
) -> str:
    """Return the page of one moment, which does not refresh itself.

    :param snapshot: Slurm's state.
    :param site: the machine.
    :param log: last lines of the bridge's log; None if there is none.
    :param no_log: sentence for a page without a log.
    :param door: partition in which jobs wait for the bridge.
    """
    holdings = Holdings(snapshot, site)
    found = sections(snapshot, holdings, site, log, no_log, door)
    return whole_page(site.name, found, holdings.picture(), snapshot.now, every=0)


def whole_page(name: str, found: Mapping[str, str], picture: str, now: int, every: float, problem: str = "") -> str:
    """Return the page as HTML.

    :param name: name of the machine.
    :param found: HTML of each section, as `sections` returns it.
    :param picture: picture of the machine as SVG.
    :param now: time of the state in seconds since 1970; 0 if none is known yet.
    :param every: seconds between two refreshes; 0 for a page that does not refresh itself.
    :param problem: reason for which the state is old, in words.
    """
    template = read_text(_PAGE, SourceError, "a page")
    state = {"now": now, "every": every, "problem": problem, "picture": digest(picture)}
    script = re.search(r"<script>(.*?)</script>", template, re.DOTALL)
    assert script is not None  # of the template
    values = {
        "TITLE": text(name),
        "STATE": text(json.dumps(state)),
        "PICTURE": picture.replace(' xmlns="http://www.w3.org/2000/svg"', ""),  # SVG inside HTML needs no namespace
        "HASH": b64encode(sha256(script[1].encode()).digest()).decode(),
        **{name.upper(): one for name, one in found.items()},
    }
    # One pass, so that a text of Slurm that looks like a place of the template stays a text.
    return _PLACE.sub(lambda match: values.get(match[1], ""), template)


def digest(picture: str) -> str:
    """Return a short text that differs between different pictures."""
    return sha256(picture.encode()).hexdigest()[:16]


def sections(
    snapshot: SlurmSnapshot,
    holdings: Holdings,
    site: Site,
    log: Sequence[str] | None = None,
    no_log: str = NO_LOG,
    door: str = "door",
) -> dict[str, str]:
    """Return the HTML of the page's sections but for the picture, by their names.

    :param snapshot: Slurm's state.
    :param holdings: the running jobs of this state.
    :param site: the machine.
    :param log: last lines of the bridge's log; None if there is none.
    :param no_log: sentence for a page without a log.
    :param door: partition in which jobs wait for the bridge.
    """
    return {
        "facts": _facts(snapshot, holdings, site, door),
        "shared": _shared(holdings, site),
        "waiting": waiting(snapshot, holdings, site, door),
        "running": _running(snapshot, holdings, site),
        "closed": _closed(holdings, site),
        "log": paragraph(no_log) if log is None else events(log, snapshot.now),
    }


def _facts(snapshot: SlurmSnapshot, holdings: Holdings, site: Site, door: str) -> str:
    every, busy, closed = site.cluster.num_nodes, holdings.busy, holdings.closed
    queue = [job for job in snapshot.jobs if job.state == "PENDING"]
    left = sum(bool(job.mark.left) for job in queue)
    pairs = len(holdings.conflicts)
    tiles = [
        (f"{len(holdings.jobs):,}", "jobs run", ""),
        (f"{len(queue):,}", "jobs wait", f"{left:,} left to Slurm" if left else ""),
        (f"{len(busy):,}", f"of {every:,} nodes are in use", f"{len(busy) / every:.0%}"),
        (f"{every - len(busy | closed):,}", "nodes are free", ""),
        (f"{len(closed):,}", "nodes take no jobs", f"jobs run on {len(closed & busy):,}" if closed & busy else ""),
        (f"{pairs:,}", f"pair{'s' * (pairs != 1)} of jobs share{'s' * (pairs == 1)} links",
         f"{holdings.conflicts.num_links:,} links" if pairs else ""),
    ]  # fmt: skip
    written = [
        f"<li{bad(bool(pairs) and words.startswith('pair'))}><b>{number}</b> {words}"
        + (f" <small>{more}</small>" if more else "")
        + "</li>"
        for number, words, more in tiles
    ]
    notes = [_door(snapshot, door), *([site.note] if site.note else [])]
    if holdings.outside:
        names = ", ".join(job.id for job in holdings.outside[:6]) + (" ..." if len(holdings.outside) > 6 else "")
        notes.append(f"Nodes outside of this fabric are held by {len(holdings.outside):,} jobs: {names}.")
    return f"<ul class=tiles>{''.join(written)}</ul>" + "".join(map(paragraph, notes))


def _door(snapshot: SlurmSnapshot, door: str) -> str:
    if door not in snapshot.up:
        return f"There is no partition {door}: Slurm alone places the jobs."
    if snapshot.up[door]:
        return f"Partition {door} is up: Slurm itself starts the jobs in it, not the bridge."
    return f"Partition {door} is down: jobs in it start when the bridge moves them."


def _running(snapshot: SlurmSnapshot, holdings: Holdings, site: Site) -> str:
    partners, rows = holdings.partners(), []
    for job, nodes in zip(holdings.jobs, holdings.nodes, strict=True):
        leaves = len({int(leaf) for leaf in site.cluster.leaf[nodes]})
        others = partners.get(job.id, [])
        ends = span_words(job.end - snapshot.now) if job.end else "no limit"
        state = "" if job.state == "RUNNING" else job.state.lower()
        row = [
            _job(job.id, holdings), job.user, job.partition, f"{len(nodes):,}", hosts(job.hosts), f"{leaves:,}",
            state or span_words(snapshot.now - job.start), ends, _placed_by(job),
            Html(", ".join(_job(name, holdings) for name in others[:MOST_LINKS]) + _more(len(others))),
        ]  # fmt: skip
        rows.append((job.id, row))
    heads = ("job", "user", "partition", "#nodes", "on", "#leaf switches", "runs for", "ends within", "placed by",
             "shares links with")  # fmt: skip
    return table(heads, rows) if rows else paragraph("No job runs.")


def _more(count: int) -> str:
    return f" and {count - MOST_LINKS:,} more" if count > MOST_LINKS else ""


def _placed_by(job: SlurmJob) -> str:
    if job.mark.left:
        return f"Slurm: {LEFT.get(job.mark.left, job.mark.left)}"
    return "bridge" if job.is_placed else "Slurm"


def _shared(holdings: Holdings, site: Site) -> str:
    rows, pairs = [], holdings.conflicts.pairs
    worst = sorted(pairs.items(), key=lambda pair: -len(pair[1]))[:MOST_ROWS]
    for (one, other), links in worst:
        names = [site.link(link) for link in links[:MOST_LINKS].tolist()]
        words = "; ".join(names) + _more(len(links))
        ids = holdings.jobs[one].id, holdings.jobs[other].id
        rows.append((" ".join(ids), [*(_job(name, holdings) for name in ids), f"{len(links):,}", words]))
    for (one, other), nodes in holdings.conflicts.nodes.items():
        ids = holdings.jobs[one].id, holdings.jobs[other].id
        which = hosts([site.names[node] for node in nodes.tolist()])
        words = Html(f"they share {len(nodes):,} node{'s' * (len(nodes) != 1)}: {which}")
        rows.append((" ".join(ids), [*(_job(name, holdings) for name in ids), "", words]))
    if not rows:
        return paragraph("No two running jobs share a link.")
    return table(("job", "job", "#links", "which"), rows, len(pairs) - len(worst))


def _closed(holdings: Holdings, site: Site) -> str:
    found: dict[str, list[int]] = {}
    for node in sorted(holdings.closed):
        found.setdefault(holdings.state_words(node), []).append(node)
    rows = []
    for state, nodes in sorted(found.items()):
        both = zip(holdings.jobs, holdings.nodes, strict=True)
        jobs = [job.id for job, own in both if not set(own.tolist()).isdisjoint(nodes)]
        running = Html(", ".join(_job(name, holdings) for name in jobs[:MOST_LINKS]) + _more(len(jobs)))
        row = [state, f"{len(nodes):,}", hosts([site.names[node] for node in nodes]), running]
        rows.append((" ".join(jobs), row))
    return table(("state", "#nodes", "which", "jobs there"), rows) if rows else paragraph("All nodes take jobs.")


def _job(name: str, holdings: Holdings) -> Html:
    """Return a job's name with its colour."""
    return Html(f'<span class=job><i style="background:{holdings.colours[name]}"></i>{text(name)}</span>')
