"""Reads the descriptions of arguments from docstrings, which become help texts and parts of documents."""

import inspect
import re
from typing import Any


def descriptions_in(documented: Any, section: str = "Args") -> dict[str, str]:
    """Return the descriptions in a section of a docstring, each on one line, by the names that they belong to.

    Args:
        documented: a function or class with a docstring in Google style.
        section: the heading of the section.
    """
    _, _, rest = (inspect.getdoc(documented) or "").partition(f"\n{section}:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", rest.partition("\n\n")[0], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}
