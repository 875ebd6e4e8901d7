"""Queues: orders of waiting jobs, and the rules by which a pass over them may start a job before earlier ones."""

from .backfill import QUEUES, Backfill, Queue, find_queue
from .order import ORDERS, Order, find_order
from .situation import Promise, Situation

__all__ = [
    "ORDERS",
    "QUEUES",
    "Backfill",
    "Order",
    "Promise",
    "Queue",
    "Situation",
    "find_order",
    "find_queue",
]
