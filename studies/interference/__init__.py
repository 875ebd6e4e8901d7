"""Allocators by what shared links cost in waits, on a real log and a real fabric, and the error of the model."""
