"""``topompi profile``: the messages that a program sends."""
