"""Turns requests into responses, with the checks that all operations share. Knows no HTTP server."""
