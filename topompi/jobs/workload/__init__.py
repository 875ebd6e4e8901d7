"""Workloads: jobs as columns, and what reads, makes and changes them."""

from .swf import read_swf
from .workload import Reading, Workload

__all__ = ["Reading", "Workload", "read_swf"]
