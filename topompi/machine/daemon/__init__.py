"""Common parts of daemons: unit file, messages to systemd, log, watched files, counters. Standard library only."""
