"""Prices of jobs that share nodes, bills, and the ledger of accounts."""
