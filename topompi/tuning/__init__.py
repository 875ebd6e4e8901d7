"""Tuning without an application: every algorithm measured, the record of it, and the rules that follow."""
