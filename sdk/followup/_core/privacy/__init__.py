"""What keeps personal data out of tracebacks and texts."""
