"""Workloads (lists of jobs, stored as columns), and functions that read, make and change them."""

from .read import read_workload
from .sacct import read_sacct
from .swf import read_swf
from .workload import LeftOut, Workload

__all__ = ["LeftOut", "Workload", "read_sacct", "read_swf", "read_workload"]
