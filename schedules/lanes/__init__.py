"""Collectives on hosts with several ranks, in lanes: each local rank carries a part of the data between hosts."""
