"""The commands ``topompi colocate``."""
