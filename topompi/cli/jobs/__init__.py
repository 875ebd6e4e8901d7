"""``topompi jobs``: commands about many jobs on one machine."""
