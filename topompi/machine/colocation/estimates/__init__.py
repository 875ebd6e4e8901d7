"""From a log of the shutter to performance beside others: records and estimators."""
