"""Commands that prepare a job's runs: tune and probe measure, why explains choices, export configures MPI libraries."""
