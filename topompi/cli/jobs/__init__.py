"""``topompi jobs``: many jobs on one machine."""
