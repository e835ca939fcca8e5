"""What a valid value is, as JSON Schema and as checks, and the errors that name what is invalid."""
