"""Tests of the shutter, on real processes that the tests start and end."""
