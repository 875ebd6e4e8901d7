"""``topompi schedule``: what a collective sends, and what it costs."""
