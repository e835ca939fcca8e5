"""Integrations of clinics, for the tests of the simulation: three correct ones, and wrong ones derived from them."""
