"""Drawings of schedules in SVG: trees, and charts of conflicts."""
