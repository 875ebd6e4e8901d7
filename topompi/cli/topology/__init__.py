"""``topompi topology``: fabrics, routes, and the inside of a host."""
