"""Mutation testing of the core with mutmut: small mistakes are made, and a test has to notice."""
