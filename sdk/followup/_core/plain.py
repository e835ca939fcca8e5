"""What the verification of a webhook shares with the rest of the package.

It imports nothing, because the cold start of a function in the cloud imports it too.
"""

from __future__ import annotations

# Not imported from `typing`, whose import takes longer than all that verifies a webhook. Nor the literal False, because
# jedi skips what depends on that.
TYPE_CHECKING = bool()  # noqa: UP018

QUOTES = "\"'`“”‘’«»"


class Late:
    """Stands for a module that only annotations name: it is imported when something evaluates one of them.

    Its names are ``Any`` where the module cannot be imported, because it belongs to an extra.

    Args:
        name: name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # of tools that look at every global variable
            raise AttributeError(name)
        from importlib import import_module

        try:
            module = import_module(self._name)
        except ImportError:
            module, name = import_module("typing"), "Any"
        return getattr(module, name)


def surroundings(text: str) -> str | None:
    """Return what is wrong around a key, a secret or a URL, as the end of a message; None if nothing is.

    Files and the loaders of ``.env`` files add line breaks and quotation marks, which lead to puzzling errors later.
    """
    if text != text.strip():
        return "begins or ends with white space or a line break: remove it, for example with .strip()"
    if text and (text[0] in QUOTES or text[-1] in QUOTES):
        return "begins or ends with a quotation mark: remove it"
    return None


def unwrapped(value: object) -> str:
    """Return how to get the text of an object that hides it, as the end of a message; empty if it hides none."""
    return ": pass its get_secret_value()" if hasattr(value, "get_secret_value") else ""
