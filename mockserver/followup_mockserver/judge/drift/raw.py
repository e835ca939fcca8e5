"""Typed access to the parts of an OpenAPI document, which may be malformed."""

from typing import Any
from urllib.parse import unquote

from followup_mockserver.judge.drift.errors import DocumentError


class Raw:
    """Reads the parts of a document, and follows the references between them.

    Args:
        document: the OpenAPI document.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def object(self, value: Any, at: str) -> dict[str, Any]:
        """Return an object, or the object that a reference points to; an absent one is empty.

        Raises:
            DocumentError: it is something else.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise DocumentError(f"{at} must be an object")
        reference = value.get("$ref")
        if reference is None:
            return value
        others = {name: each for name, each in value.items() if name != "$ref"}
        return {**self.object(self.target(reference, at), at), **others}

    def list(self, value: Any, at: str) -> list[Any]:
        """Return an array; an absent one is empty.

        Raises:
            DocumentError: it is something else.
        """
        if value is None:
            return []
        if not isinstance(value, list):
            raise DocumentError(f"{at} must be an array")
        return value

    def target(self, reference: Any, at: str) -> Any:
        """Return the part of the document that a reference points to.

        Raises:
            DocumentError: there is none, or it is in another document.
        """
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise DocumentError(f"{at}: the reference {reference!r} leads out of the document; bundle it into one file")
        if reference[1:2] not in ("", "/"):
            raise DocumentError(f"{at}: the reference {reference} is not a path, such as #/components/schemas/Patient")
        part: Any = self.document
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
                part = part[int(name)]
            elif isinstance(part, dict) and name in part:
                part = part[name]
            else:
                raise DocumentError(f"{at}: the reference {reference} has no target")
        return part
