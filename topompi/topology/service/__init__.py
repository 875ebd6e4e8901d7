"""The topology service: it reads a fabric's routes once and answers requests of many jobs."""
