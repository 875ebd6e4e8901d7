"""Queues: the order of waiting jobs, and which of them a pass may start before others."""

from .backfill import Backfill
from .order import ORDERS, Order, find_order
from .situation import Promise, Situation

__all__ = ["ORDERS", "Backfill", "Order", "Promise", "Situation", "find_order"]
