"""What calls cost on a job's network, by our algorithms and the MPI library's: without MPI, and before any measurement.

``libraries`` knows what MPI libraries run for a call, ``predictor`` costs that and our schedules, ``untuned`` chooses.
"""
