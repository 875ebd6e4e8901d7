"""S. D. Pollard et al., Interference-free node allocation, SC18: whether isolation pays, and gains by pattern."""
