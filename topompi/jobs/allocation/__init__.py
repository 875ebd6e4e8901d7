"""Policies of allocation: which free nodes a job gets, each a class with the same few methods."""

from .proving import check_allocator
from .registry import ALLOCATORS, find_allocator
from .requests import Requests, requests_of
from .slots import SlotState
from .state import Allocator, Job, Placement, State

__all__ = [
    "ALLOCATORS",
    "Allocator",
    "Job",
    "Placement",
    "Requests",
    "SlotState",
    "State",
    "check_allocator",
    "find_allocator",
    "requests_of",
]
