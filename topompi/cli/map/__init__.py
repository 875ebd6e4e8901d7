"""``topompi map``: which rank goes where."""
