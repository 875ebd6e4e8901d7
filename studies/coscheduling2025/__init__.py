"""Tables of A. Tsoukleidis-Karydakis, Performance modeling for co-scheduling in HPC systems, NTUA 2025, beside ours."""
