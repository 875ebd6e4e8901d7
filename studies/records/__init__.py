"""Measured times of all algorithms, and what the cost model would have chosen."""
