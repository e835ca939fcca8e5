"""The table of the 32 operations, and the OpenAPI document that is generated from it."""
