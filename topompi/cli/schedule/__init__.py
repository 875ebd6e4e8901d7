"""``topompi schedule``: the messages and the cost of a collective."""
