"""Allreduces on networks in which some hosts have slow links."""
