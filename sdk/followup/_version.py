"""The version of the distribution, and how to install it, in one place."""

__version__ = "0.1.0"

IS_RELEASED = False
"""Whether the package index has this distribution. ``tools/installation.py`` sets it, and rewrites the pages."""


def installation(extras: str) -> str:
    """Return how to install extras, such as ``cli,store``, for a message about what is missing."""
    if IS_RELEASED:
        return f"python -m pip install 'followup[{extras}]'"
    # Not by its name: on the index, that could be somebody else's package.
    return f"in your clone, run python -m pip install '.[{extras}]' (the extra followup[{extras}])"
