"""Neighbourhood collectives of real and synthetic communication graphs, simulated."""
