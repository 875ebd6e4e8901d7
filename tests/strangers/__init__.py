"""Other people's packages: their own tests and examples, natively and through the launcher, compared."""
