"""What a value must look like: JSON Schemas of requests, checks of arguments, and the errors for invalid values.

Nothing here knows the state of a mock: whether an object exists, or may be changed, is a question for ``rules``.
"""
