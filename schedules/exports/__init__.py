"""Schedules as input for other programs: GOAL and JSON."""
