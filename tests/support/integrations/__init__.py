"""Integrations of clinics, for the tests of the simulation. The catalogue lists them."""
