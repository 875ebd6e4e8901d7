"""Real pairs of programs under the shutter, and the cost of the shutter: A. D. Breslow et al., POPPA, SC13."""
