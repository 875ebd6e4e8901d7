"""Parts that two fabrics have in common and that changed: switches of another name or id, cables of another rate."""

from __future__ import annotations

from collections.abc import Iterator

from ..fabric import Fabric
from ..labels import end_name, switch_labels

__all__ = ["altered", "exchanged_switches"]

Cable = tuple[tuple[str, int], tuple[str, int]]


def exchanged_switches(one: Fabric, other: Fabric) -> dict[str, str]:
    """Find switches that another switch of the same name replaced: id in the second fabric -> id in the first.

    The name must be unique in each fabric, and differ from the switch's id.
    """
    gone, new = (
        {
            label: identity
            for label, identity in zip(switch_labels(of), of.switch_ids, strict=True)
            if label != identity and identity not in against.switch_index
        }
        for of, against in ((one, other), (other, one))
    )
    return {new[label]: gone[label] for label in gone if label in new}


def altered(one: Fabric, other: Fabric, same_id: dict[str, str]) -> dict[str, list[str]]:
    """Describe the common parts of two fabrics that changed, in words, by kind of change.

    The kinds are ``exchanged`` and ``renamed`` switches, and ``slower`` and ``faster`` cables.

    :param one: the first fabric.
    :param other: the second fabric.
    :param same_id: id in the second fabric -> id in the first, for adapters and switches that were exchanged.
    """
    found: dict[str, list[str]] = {"exchanged": [], "renamed": [], "slower": [], "faster": []}
    labels = dict(zip(one.switch_ids, switch_labels(one), strict=True))
    for new, old in exchanged_switches(one, other).items():
        found["exchanged"].append(f"{labels[old]}: {old} → {new}")
    for identity, name in zip(other.switch_ids, other.switch_names, strict=True):
        before = one.switch_names[one.switch_index[identity]] if identity in one.switch_index else name
        if before != name:
            found["renamed"].append(f"{before or identity} → {name or identity}")
    rates = {cable: (rate, words) for cable, rate, words in _rated(one, {})}
    for cable, rate, _ in _rated(other, same_id):
        before_rate, words = rates.get(cable, (rate, ""))
        if rate != before_rate:
            kind = "slower" if rate < before_rate else "faster"
            found[kind].append(f"{words}: {before_rate / 1e9:.4g} → {rate / 1e9:.4g} GB/s")
    return found


def _rated(fabric: Fabric, same_id: dict[str, str]) -> Iterator[tuple[Cable, float, str]]:
    """Yield the ends, the rate in bytes/s, and the ends in words of each cable with known ports and rate."""
    labels = switch_labels(fabric)
    ends = zip(
        *(fabric.link_source.tolist(), fabric.link_source_port.tolist()),
        *(fabric.link_target.tolist(), fabric.link_target_port.tolist()),
        fabric.link_rate.tolist(),
        strict=True,
    )
    for source, port, target, target_port, rate in ends:
        names = [fabric.vertex_id(vertex) for vertex in (source, target)]
        one, two = ((same_id.get(name, name), at) for name, at in zip(names, (port, target_port), strict=True))
        if one < two and port and target_port and rate == rate:
            words = sorted(
                f"{end_name(fabric, labels, end)}:{at}" for end, at in ((source, port), (target, target_port))
            )
            yield (one, two), rate, " - ".join(words)
