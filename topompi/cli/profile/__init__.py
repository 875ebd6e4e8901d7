"""``topompi profile``: what a program really sends."""
