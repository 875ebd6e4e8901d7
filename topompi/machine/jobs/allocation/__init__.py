"""Policies of node allocation: classes with a common interface, `Allocator`, that choose free nodes for a job."""

from .occupancy import Allocator, Job, Occupancy, Placement
from .proving import check_allocator
from .registry import ALLOCATORS, MADE_FROM, find_allocator, within_parts
from .requests import Requests, requests_of
from .slots import SlotOccupancy

__all__ = [
    "ALLOCATORS",
    "MADE_FROM",
    "Allocator",
    "Job",
    "Occupancy",
    "Placement",
    "Requests",
    "SlotOccupancy",
    "check_allocator",
    "find_allocator",
    "requests_of",
    "within_parts",
]
