"""Host and device in the node description of an adapter, as drivers and scripts write them."""

from __future__ import annotations

import re

__all__ = ["is_device", "split_description"]

# Default node descriptions of firmware and drivers, which adapters have if no administrator has set a host name.
_NAMELESS = re.compile(r"(localhost\b.*|\(none\).*|MT\d+\b.*|)")
_NAMELESS_CHIP = re.compile(r".*\bMellanox Technologies\b.*")
# Model of a card at the end of a description. It cannot serve as a device name, because a host may have two cards of
# one model.
_MODEL = re.compile(
    r"(?<=\S)\s[\s-]{0,9}(?:(?:Mellanox|NVIDIA)\s{1,9})?(?:MT\d{4,5}|ConnectX|Connect-?IB|BlueField|InfiniHost)\b",
    re.IGNORECASE,
)
# Device names that drivers assign (``mlx5_0``), and adapter numbers that init scripts write into descriptions
# (``HCA-1``).
_NUMBERED = r"(?:(?:IB[-_])?HCA[-_]?|mlx[45]_|hfi1_)\d{1,4}"
# Rules of udev may put any word in the place of a driver's number (``mlx5_storage``). The kernel calls the management
# half of an adapter with several planes ``smi1``.
_DRIVERS = (
    rf"(?:(?:{_NUMBERED}|(?:mlx[45]|hfi1)_\w{{1,40}}|(?:mthca|qib|ipath|cxi|bnxt_re|irdma|rdmap|smi)\d{{1,4}}"
    r"|(?:ibp|ibs|rocep|roces)\d\w{0,40})(?:[/:]\d{1,2})?)"
)
# Words that count as device names only after a blank (``n1 NIC2``), because host names may end in them, too.
_WORDS = r"(?:(?:NIC|CA|RAIL|PORT|IB|P|OPA|EFA|BOND|RDMA|VF)[-_]?\d{1,3}|PORT\s\d{1,3}|HCA(?:\s?#?\d{1,3})?)"
_DEVICE = rf"(?:{_DRIVERS}|{_WORDS})"
_BETWEEN = r"[@:/,;|=]"
_LAST = re.compile(
    rf"(?P<host>.*\S)(?:\s+(?P<word>{_DEVICE})|\s*[(\[<]\s*(?P<inner>{_DEVICE})\s*[)\]>]"
    rf"|\s*{_BETWEEN}\s*(?P<device>{_DRIVERS}))",
    re.IGNORECASE,
)
_FIRST = re.compile(
    rf"(?:(?P<device>{_DRIVERS})(?:\s+|\s*{_BETWEEN}\s*)|(?P<word>{_NUMBERED})-)(?P<host>\S.*)", re.IGNORECASE
)
_JOINED = re.compile(rf"(?P<host>.*[^\s_-])[-_](?P<device>{_NUMBERED})", re.IGNORECASE)
# A driver's device and what stands behind it, its port, plane or rate (``mlx5_0 plane1``, ``HCA-1/P1``).
_WITHIN = re.compile(
    rf"(?P<host>\S.*?)(?:\s|{_BETWEEN})\s{{0,9}}[(\[<]?(?P<device>{_DRIVERS}(?:[^\w@].*)?)", re.IGNORECASE
)
# Beginnings of device names that udev's rules make. Hosts' names may begin with them, too.
_STEM = re.compile(rf"(?:{_DRIVERS}|{_WORDS}|(?:ib|roce|iw|opa|rdma|hca|nic)\w*)(?:\W.*)?", re.IGNORECASE)
_ALONE = re.compile(_DRIVERS, re.IGNORECASE)
_LINKING = re.compile(r"(?:of|on|in|at)\s+(?=\S)", re.IGNORECASE)
_QUOTED = re.compile(r"(?P<sign>[\"'])(?P<name>.+)(?P=sign)")
_FORMS = (_LAST, _JOINED, _FIRST, _WITHIN)
_LONGEST = 256  # characters of a description that is searched for a device; InfiniBand's have 64 bytes


def is_device(word: str) -> bool:
    """Whether a word could be a device's name, if other words beside it are devices' names, too."""
    return _STEM.fullmatch(word) is not None


def split_description(description: str) -> tuple[str, str]:
    """Split a node description into host name and device name; empty for a part that it does not contain."""
    text = description.strip()
    devices: list[str] = []
    if _NAMELESS.fullmatch(text) or len(text) > _LONGEST:
        return (text if len(text) > _LONGEST else ""), ""
    if model := _MODEL.search(text):
        text = text[: model.start()].rstrip(" -")
    if _NAMELESS_CHIP.fullmatch(text):
        return "", ""
    while match := next(filter(None, (form.fullmatch(text) for form in _FORMS)), None):
        found = match.groupdict()
        devices.insert(0, next(found[key] for key in ("device", "word", "inner") if found.get(key)))
        text = _bare(match["host"])
    if _ALONE.fullmatch(text):
        return "", " ".join([text, *devices])
    return ("" if _NAMELESS.fullmatch(text) else text), " ".join(devices)


def _bare(host: str) -> str:
    """Remove marks, words and quotes that joined a host name with the device that stood beside it."""
    text = host.strip(" \t@:/,;|=-")
    text = _LINKING.sub("", text, count=1) if _LINKING.match(text) else text
    quoted = _QUOTED.fullmatch(text)
    return quoted["name"] if quoted else text
