"""The validity of values, as JSON Schemas and as checks of arguments, and the errors about invalid ones."""
