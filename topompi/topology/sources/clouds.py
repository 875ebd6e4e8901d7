"""Reader of switch hierarchies: answers of AWS, OCI and GCP, GCP's paths, Kubernetes' node labels, Flux's racks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ...errors import SourceError
from ...inputs import InputFile, parse_json
from ...inputs.slurm.switches import SwitchRow, counted
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]

NAME = "cloud hierarchy (AWS, OCI, GCP, Kubernetes labels)"
TOP = "network/top"  # id of the switch above all hierarchies; unique, because no name below it is made of these words

_JSON = re.compile(
    r'"(NetworkNodes|(compute)?[-_]?network[-_]?block[-_]?id|physicalHost(Topology)?|containment)"\s*:'
    r'|"kind"\s*:\s*"Node(List)?"',
    re.IGNORECASE,
)
_TITLES = re.compile(r"\s*NAME[\s,]+\w*HOST\w*\s*", re.IGNORECASE)
_PATH = re.compile(r"\s*+(?P<host>[^\s,:=]++)[\s,]++(?P<path>(/[^/\s,]++){2,})/?\s*+")
_KUBECTL = re.compile(r"NAME\s+STATUS\s+ROLES\s")
# Labels of a node from the topmost switch to the lowest; %d counts from the node upwards. The first family that a node
# has any label of is used.
_LABELS = (
    ["fabric.topograph.run/tier-%d"],
    [f"network.topology.nvidia.com/{level}" for level in ("datacenter", "core", "spine", "block", "leaf")],
    [f"topology.k8s.aws/network-node-layer-{level}" for level in (1, 2, 3)],
    [f"cloud.google.com/gce-topology-{level}" for level in ("block", "subblock")],
    [f"oci.oraclecloud.com/rdma.{level}_id" for level in ("hpc_island", "network_block", "local_block")],
    [f"cloud.provider.com/topology-{level}" for level in ("block", "rack")],  # the example of Kueue's manual
)
_OCI = ("hpcislandid", "networkblockid", "localblockid")
_GCP = ("cluster", "block", "subblock")
MOST_TIERS = 9

Node = tuple[str, str, dict[str, object]]  # host, ``file`` or ``file:line``, labels
Place = tuple[str, str, list[str]]  # host, ``file`` or ``file:line``, switches above it from the topmost


def recognise(head: str) -> bool:
    """Whether a text begins as an answer of a cloud, a list of paths, a list of nodes, or a graph of Flux."""
    if head.lstrip()[:1] in ("{", "["):
        return _JSON.search(head) is not None
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if lines and _TITLES.fullmatch(lines[0]):
        lines = lines[1:]
    if not lines:
        return False
    paths = sum(_PATH.fullmatch(line) is not None for line in lines)
    return _KUBECTL.match(lines[0]) is not None or 2 * paths >= len(lines)


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the hierarchy of switches above each instance or node; no cables or rates are known.

    Several hierarchies are joined by one switch, because clouds name only the levels that are near.

    :param texts: the answers or lists, which are read as one.
    :param report: receiver of problems and of notes about hosts without switches.
    :raises SourceError: if the text is malformed, or lists no host with switches; the message contains the keys of the
        labels that the nodes have.
    """
    if report.labels:
        _require_labels(texts, report)
    places = [place for text in texts for place in _places(text, report)]
    bare = [host for host, _, switches in places if not switches]
    if bare:
        more = ", ..." if len(bare) > 5 else ""
        report.note(f"{texts[0].name}: {len(bare):,} hosts without switches are left out: {', '.join(bare[:5])}{more}")
    places = [place for place in places if place[2]]
    if not places:
        wanted = "hosts with the switches above them (NetworkNodes, blocks, labels such as"
        got = _keys_of(texts)
        hint = f"labels {', '.join(got)}: name those of switches by --labels TOP,...,LEAF" if got else "none"
        raise SourceError(f"{texts[0].name}: expecting {wanted} network.topology.nvidia.com/leaf), got {hint}")
    return build_tree(texts[0].name, counted(_rows(places)), report)


def _require_labels(texts: Sequence[InputFile], report: Report) -> None:
    got = _keys_of(texts)
    if strange := [key for key in report.labels if key not in got]:
        raise SourceError(f"{texts[0].name}: expecting label {strange[0]} of a node, got {', '.join(got) or 'none'}")


def _keys_of(texts: Sequence[InputFile]) -> list[str]:
    """Return the keys of the nodes' labels, those that divide the nodes into groups first."""
    values: dict[str, set[str]] = defaultdict(set)
    nodes = 0
    for _, _, labels in (node for text in texts for node in _labelled(text)):
        nodes += 1
        for key, value in labels.items():
            values[key].add(str(value))
    return sorted(values, key=lambda key: (not 1 < len(values[key]) < nodes, key))


def _rows(places: Sequence[Place]) -> Iterator[SwitchRow]:
    """Make the definitions of all switches; a host whose lowest switch is unnamed gets one of its own."""
    depth = max(len(switches) for _, _, switches in places)
    nodes: dict[str, dict[str, None]] = defaultdict(dict)
    below: dict[str, dict[str, None]] = defaultdict(dict)
    where: dict[str, str] = {}
    levels: dict[str, set[int]] = defaultdict(set)
    for _, _, switches in places:
        for level, name in enumerate(switches):
            levels[name].add(level)
    for host, place, switches in places:
        path = [f"{name}/level{at}" if len(levels[name]) > 1 else name for at, name in enumerate(switches)]
        path += [f"{path[-1]}/unnamed"] if len(path) < depth else []
        for upper, lower in zip([TOP, *path[:-1]], path, strict=True):
            below[upper].setdefault(lower)
            where.setdefault(lower, place)
        nodes[path[-1]].setdefault(host)
    if len(below[TOP]) > 1:
        yield SwitchRow(TOP, (), tuple(below[TOP]), places[0][1])
    for name, place in where.items():
        yield SwitchRow(name, tuple(nodes.get(name, ())), tuple(below.get(name, ())), place)


def _places(text: InputFile, report: Report) -> Iterator[Place]:
    head = text.head()
    if head.lstrip()[:1] in ("{", "["):
        yield from _of_json(text, report)
    elif _KUBECTL.match(head.lstrip()):
        yield from ((name, place, _by_labels(labels, report.labels)) for name, place, labels in _of_kubectl(text))
    else:
        yield from _of_paths(text, report)


def _of_paths(text: InputFile, report: Report) -> Iterator[Place]:
    for number, line in text.lines():
        if not line.strip() or line.lstrip().startswith("#") or _TITLES.fullmatch(line):
            continue
        place, match = f"{text.name}:{number}", _PATH.fullmatch(line)
        if match is None:
            report.problem(
                SourceError(f"{place}: expecting a host and /BLOCK/SUBBLOCK/HOST, got {line.strip()[:60]!r}")
            )
            continue
        yield match["host"], place, _above(match["path"])


def _above(path: str) -> list[str]:
    """Return the paths of the switches above a machine, topmost first, from its path, which ends with the machine."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[: level + 1]) for level in range(len(parts) - 1)]


def _labelled(text: InputFile) -> Iterator[Node]:
    """Yield the nodes of Kubernetes in a text."""
    if _KUBECTL.match(text.head().lstrip()):
        yield from _of_kubectl(text)
    elif text.head().lstrip()[:1] in ("{", "["):
        for number, item in enumerate(_items(parse_json(text.data(), text.name, SourceError), text.name)):
            if isinstance(item, dict) and item.get("kind") == "Node":
                yield _node(item, f"{text.name}: item {number}")


def _of_kubectl(text: InputFile) -> Iterator[Node]:
    for number, line in text.lines():
        words = line.split()
        if not words or words[0] == "NAME":
            if words and words[-1] != "LABELS":
                raise SourceError(f"{text.name}:{number}: expecting a column LABELS (kubectl get nodes --show-labels)")
            continue
        yield words[0], f"{text.name}:{number}", dict(pair.partition("=")[::2] for pair in words[-1].split(","))


def _of_json(text: InputFile, report: Report) -> Iterator[Place]:
    root = parse_json(text.data(), text.name, SourceError)
    within = root.get("scheduling", root) if isinstance(root, dict) else None
    if isinstance(within, dict) and isinstance(within.get("graph"), dict):
        yield from _of_graph(within["graph"], text.name)
        return
    for number, item in enumerate(_items(root, text.name)):
        place = f"{text.name}: item {number}"
        if not isinstance(item, dict):
            report.problem(SourceError(f"{place}: expecting an object, got {type(item).__name__}"))
        elif item.get("kind") == "Node":
            name, _, labels = _node(item, place)
            yield name, place, _by_labels(labels, report.labels)
        else:
            yield _of_instance(item, place)
    if isinstance(root, dict) and root.get("NextToken"):
        report.note(f"{text.name}: this is one page of an answer, and NextToken says that others follow")


def _node(item: dict[str, object], place: str) -> Node:
    metadata = item.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return _named(name, place), place, labels if isinstance(labels, dict) else {}


def _of_instance(item: dict[str, object], place: str) -> Place:
    """Return an instance of AWS, GCP or OCI, whose tools spell the same names of fields in different ways."""
    fields = {key.replace("-", "").replace("_", "").lower().removeprefix("compute"): item[key] for key in item}
    if "networknodes" in fields:
        switches = fields["networknodes"]
        return _named(fields.get("instanceid"), place), place, _texts(switches if isinstance(switches, list) else [])
    if "resourcestatus" in fields:
        status = fields["resourcestatus"] if isinstance(fields["resourcestatus"], dict) else {}
        levels, path = status.get("physicalHostTopology"), status.get("physicalHost")
        found = _texts(levels.get(key) for key in _GCP) if isinstance(levels, dict) else []
        # A block's name is unique only within the cluster, and a subblock's within the block.
        above = ["/" + "/".join(found[: level + 1]) for level in range(len(found))]
        return _named(fields.get("name"), place), place, above or _above(path if isinstance(path, str) else "")
    return _named(fields.get("instanceid") or fields.get("id"), place), place, _texts(fields.get(key) for key in _OCI)


def _of_graph(root: dict[str, object], name: str) -> Iterator[Place]:
    """Yield the nodes of a graph of Flux's resources (JGF), with the racks in which they are contained.

    :raises SourceError: if no node is in a rack, because one cluster above all nodes says nothing.
    """
    nodes = root.get("nodes")
    found = []
    for number, node in enumerate(nodes if isinstance(nodes, list) else []):
        metadata = node.get("metadata") if isinstance(node, dict) else None
        if isinstance(metadata, dict) and metadata.get("type") == "node":
            paths = metadata.get("paths")
            path = paths.get("containment") if isinstance(paths, dict) else None
            path, place = path if isinstance(path, str) else "", f"{name}: node {number}"
            found.append((_named(_name_of(metadata, path), place), place, _above(path)))
    if all(len(above) < 2 for _, _, above in found):
        raise SourceError(f"{name}: expecting racks or switches between cluster and nodes, got none: use --hosts")
    yield from found


def _name_of(metadata: dict[str, object], path: str) -> object:
    """Return the name of a vertex, which Flux leaves out if it is the basename with the id (-1 for none)."""
    base, number = metadata.get("basename"), metadata.get("id")
    last = path.rstrip("/").rpartition("/")[2]
    if isinstance(base, str) and base:
        digits = str(number) if isinstance(number, int) and number >= 0 else ""
        padded = last.removeprefix(base).lstrip("0")  # a number with zeros before it stands only in the path
        last = last if last.startswith(base) and padded == digits.lstrip("0") else base + digits
    return metadata.get("name") or last


def _items(root: object, name: str) -> list[object]:
    """Find the list of instances or nodes in an answer."""
    for key in ("data", "Instances", "instances", "items"):
        if isinstance(root, dict) and key in root:
            root = root[key]
    if isinstance(root, dict) and (root.get("kind") == "Node" or "resourceStatus" in root):
        return [root]
    if not isinstance(root, list):
        raise SourceError(f"{name}: expecting a list of instances or nodes, got {type(root).__name__}")
    return root


def _by_labels(labels: dict[str, object], wanted: Sequence[str]) -> list[str]:
    if wanted:
        return _texts(labels.get(key) for key in wanted)
    for family in _LABELS:
        keys = [family[0] % tier for tier in range(MOST_TIERS, -1, -1)] if "%d" in family[0] else family
        switches = _texts(labels.get(key) for key in keys)
        if switches:
            return switches
    return []


def _texts(values: Iterable[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def _named(name: object, place: str) -> str:
    if not isinstance(name, str) or not name:
        raise SourceError(f"{place}: expecting the name of an instance or node, got {name!r}")
    return name
