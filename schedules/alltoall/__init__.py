"""Generators of alltoalls: with direct or aggregated messages, and with steps in which few messages share a link."""
