"""Plain words for Slurm's reasons, the bridge's reasons, and lengths of time."""

from __future__ import annotations

__all__ = ["LEFT", "reason_words", "span_words"]

# Beginning of a reason of squeue -> its meaning; the first that fits counts.
_REASONS = {
    "ReqNodeNotAvail": "a node that it asks for is down, drained or reserved",
    "Nodes required": "the nodes that it needs are down, drained or kept for other jobs",
    "Resources": "too few of the nodes that it could have are free",
    "Priority": "other jobs have a higher priority",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows",
    "PartitionTimeLimit": "it asks for more time than its partition allows",
    "DependencyNeverSatisfied": "a job that it depends on has failed, and so it never starts",
    "Dependency": "another job has to end first",
    "BeginTime": "its begin time has not come",
    "DeadLine": "it cannot end before its deadline",
    "JobHeldUser": "its user holds it",
    "JobHeldAdmin": "an administrator holds it",
    "JobArrayTaskLimit": "as many tasks of its array run as may run at once",
    "Licenses": "the licences that it needs are in use",
    "Reservation": "its reservation has not begun, or is full",
    "BadConstraints": "no nodes have all that it asks for",
    "NodeDown": "a node that it needs is down",
    "Cleaning": "its former run is being cleaned up",
    "Prolog": "a prolog runs",
    "BurstBuffer": "its files are being copied",
    "launch failed": "its launch failed; an administrator has to release it",
    "QOS": "a limit of its quality of service",
    "Assoc": "a limit of its account or user",
    "MaxJobs": "a limit of its account or user",
    "AccountNotAllowed": "its account may not use the partition",
    "InvalidAccount": "its account is unknown",
    "InvalidQOS": "its quality of service is unknown",
    "None": "Slurm has not considered it yet",
}
# The bridge's word for a job that it leaves to Slurm -> its meaning.
LEFT = {
    "together": "its parts start together",
    "nodelist": "its user chose the nodes",
    "exclude": "its user excluded nodes",
    "features": "it asks for features of nodes",
    "resources": "it asks for generic resources",
    "reservation": "it runs in a reservation",
    "size": "the bridge's nodes can never hold it",
    "tries": "it did not start on the nodes that the bridge gave it",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))  # in seconds


def reason_words(reason: str) -> str:
    """Return the meaning of a reason of ``squeue``; an unknown reason as it is."""
    return next((words for word, words in _REASONS.items() if reason.startswith(word)), reason)


def span_words(seconds: int) -> str:
    """Return a length of time in one unit or two, for example ``2 h 5 min``; negative lengths as ``0 s``."""
    left = max(seconds, 0)
    for at, (length, unit) in enumerate(_UNITS):
        count, rest = divmod(left, length)
        if count:
            finer, name = _UNITS[min(at + 1, len(_UNITS) - 1)]
            more = rest // finer if unit in ("d", "h") else 0
            return f"{count} {unit} {more} {name}" if more else f"{count} {unit}"
    return "0 s"
