"""Neighbourhood collectives on buffers, run by exchanges whose small blocks are carried from group to group."""
