"""Circulant, grouped, Swing and Bine allreduces beside the former ones, on simulated fabrics and real allocations."""
