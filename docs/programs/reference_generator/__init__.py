"""Generates the reference documentation from declarations, docstrings, contract and the traffic of a mock.

``python docs/programs/reference_pages.py`` writes the pages. They are plain Markdown, so that they can be read in the
repository as well as in the built documentation.
"""
