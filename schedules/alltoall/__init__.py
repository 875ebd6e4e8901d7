"""Generators of alltoalls: direct ones, aggregated ones, and ones that avoid links shared by several routes."""
