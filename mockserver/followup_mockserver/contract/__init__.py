"""The 32 operations as a table, and the OpenAPI document that is made from it."""
