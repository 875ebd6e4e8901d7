"""Schedules for other programs: SimGrid's traces, GOAL, JSON."""
