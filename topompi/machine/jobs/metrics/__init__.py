"""Metrics of a simulation's outcome: waits, use of the machine, packing, and jobs that share the network."""

from .figures import figures
from .packing import average_hops, fragmentation
from .sharing import Sharing, sharing
from .summary import SIZE_CLASSES, Summary, summarise, wait_by_size
from .timeline import Steps, queue_length, utilisation

__all__ = [
    "SIZE_CLASSES",
    "Sharing",
    "Steps",
    "Summary",
    "average_hops",
    "figures",
    "fragmentation",
    "queue_length",
    "sharing",
    "summarise",
    "utilisation",
    "wait_by_size",
]
