"""Tuning without an application: measuring every algorithm, recording it, and deriving rules."""
