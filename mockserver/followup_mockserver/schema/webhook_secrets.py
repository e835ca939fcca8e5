"""The form of signing secrets that a user chooses."""

import re

SECRET_RULE = "whsec_ and up to 249 letters, digits, hyphens and underscores"  # noqa: S105 - a rule, not a secret

_SECRET = re.compile(r"whsec_[A-Za-z0-9_-]{1,249}")


def is_valid_secret(text: str) -> bool:
    """Return whether a text can be the signing secret of an endpoint."""
    return _SECRET.fullmatch(text) is not None
