"""Policies of allocation: which free nodes a job gets, each a class with the same few methods."""

from .registry import ALLOCATORS, find_allocator
from .state import Allocator, Job, Placement, State

__all__ = ["ALLOCATORS", "Allocator", "Job", "Placement", "State", "find_allocator"]
