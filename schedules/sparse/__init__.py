"""Neighbourhood collectives: exchanges along the edges of a graph of ranks, with messages aggregated in groups."""
