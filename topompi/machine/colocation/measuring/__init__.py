"""Measurement of programs in pairs on this node: the plan, the journal, the estimates, the runs, and the heat map."""
