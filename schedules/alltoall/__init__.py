"""Generators of alltoalls: direct, aggregated, and with steps in which few routes or none share a link."""
