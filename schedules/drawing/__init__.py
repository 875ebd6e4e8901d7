"""Schedules as pictures: trees, and charts of conflicts, in SVG."""
