"""Collectives with a root: the trees along which they run, and the generators of their schedules."""
