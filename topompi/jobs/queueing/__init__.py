"""Queues: the order of waiting jobs, and the rule by which a pass starts some of them before others."""

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
