"""Analysis of schedules on a network: loads and conflicts of links, lower bounds, and a cost model."""
