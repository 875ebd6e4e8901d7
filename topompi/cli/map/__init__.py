"""``topompi map``: the placement of ranks on hosts."""
