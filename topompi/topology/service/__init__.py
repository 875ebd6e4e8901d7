"""The topology service: reads a fabric's routes once and answers the questions of many jobs."""
