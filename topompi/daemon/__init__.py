"""Parts that daemons share: unit file, word to systemd, log, watched files, counters. Standard library only."""
