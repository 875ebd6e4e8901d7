"""Predicted times of calls on a job's network, by topompi's and the MPI library's algorithms; without MPI.

``libraries`` has models of the algorithms that MPI libraries choose, ``predictor`` computes the costs of these and of
topompi's schedules, and ``untuned`` chooses an algorithm by the costs.
"""
