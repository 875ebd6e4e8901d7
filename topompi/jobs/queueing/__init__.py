"""Queues: the order of waiting jobs, and which of them a pass may start before others."""

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
