"""Turns requests into responses, with the checks that all operations share, and describes them as OpenAPI document.

It does not depend on an HTTP server: that is in ``web``. What an operation does is in ``rules``.
"""
