"""From a log of the shutter to performance beside others: records, estimators, cost of the shutter, and a model."""
