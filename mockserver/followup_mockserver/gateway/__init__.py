"""Turns requests into responses, with the checks that all operations share. It does not depend on an HTTP server."""
