"""Tuning without an application: measurements of every algorithm, their record, and rules derived from them."""
