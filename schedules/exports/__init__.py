"""Schedules as input for other programs: SimGrid's traces, GOAL, and JSON."""
