"""The topology service: a daemon that reads a fabric's routes once and answers the requests of many jobs."""
