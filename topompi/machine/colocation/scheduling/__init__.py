"""Schedulers of jobs that share nodes, each on halves of nodes, and the model of their run times."""
