"""Communicators whose ranks are re-ordered for the network."""
