"""What a schedule costs on a network: loads and conflicts, lower bounds, and the cost model."""
