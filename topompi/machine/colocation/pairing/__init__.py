"""Pairs of programs for shared nodes: by difference of profiles, by labels of the rules, or by measured speed-ups."""
