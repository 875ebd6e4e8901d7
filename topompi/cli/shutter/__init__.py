"""The commands ``topompi shutter``."""
