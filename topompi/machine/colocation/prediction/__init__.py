"""Speed-ups of pairs that were not measured, predicted from the pairs that were."""
