"""Reads a contract document from a file, standard input or a URL, and the parts of it."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from followup._for_mockserver import result_within
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.validation import decoded_json


class DocumentError(Exception):
    """The document cannot be read, or it is not an OpenAPI document. The text is one line and names the place."""


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


MAX_BYTES = 64 * 1024 * 1024
"""The largest document."""

TIMEOUT = 30.0
"""Seconds within which a download must be complete."""

_MAX_DEPTH = 100
_STANDARD_INPUT = "-"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_document(source: str) -> dict[str, Any]:
    """Return the OpenAPI document of a source.

    Args:
        source: a URL that begins with ``http://`` or ``https://``, the path of a file, or ``-`` for standard input.

    Raises:
        DocumentError: it cannot be read, or it is not an OpenAPI document in JSON of version 3.
    """
    if source.lower().startswith(("http://", "https://")):
        try:
            text = result_within(TIMEOUT, lambda: _downloaded(source))
        except TimeoutError:
            raise DocumentError(f"no response within {TIMEOUT:g} s") from None
    elif source == _STANDARD_INPUT:
        text = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        text = _content_of(Path(source))
    if len(text) > MAX_BYTES:
        raise DocumentError(f"it has more than {MAX_BYTES:,} bytes")
    return _checked(_decoded(text.removeprefix(_BYTE_ORDER_MARK)))


def _content_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DocumentError(getattr(error, "strerror", None) or "the name of the file is invalid") from None


def _downloaded(url: str) -> bytes:
    """Return the body of a response. No key is sent: contracts are public."""
    import httpx  # imported late, because a file needs no client

    text = bytearray()
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT, follow_redirects=True) as response:
            if response.status_code != httpx.codes.OK:
                raise DocumentError(f"the server responded with {response.status_code} {response.reason_phrase}")
            for part in response.iter_bytes():
                text += part
                if len(text) > MAX_BYTES:
                    break
    except httpx.TimeoutException:
        raise TimeoutError from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DocumentError(f"no response ({type(error).__name__}: {error})") from None
    return bytes(text)


def _decoded(text: bytes) -> Any:
    try:
        return decoded_json(text, _MAX_DEPTH)
    except ServiceError as error:
        raise DocumentError(_reason(text, error)) from None


def _reason(text: bytes, error: ServiceError) -> str:
    start = text.lstrip()[:20].lower()
    if start.startswith(b"<"):
        return "it is a web page, not JSON; the contract of a mock is at /api/v1/openapi.json"
    if start.startswith((b"openapi:", b"swagger:", b"---", b"info:", b"#")):
        return "it is YAML; convert it to JSON first"
    return error.message.replace("The body must be JSON", "it is not JSON").replace("The body", "it").rstrip(".")


def _checked(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise DocumentError("it is not an OpenAPI document: it must be an object")
    if "swagger" in document:
        raise DocumentError(f"it is a document of Swagger {document['swagger']}; convert it to OpenAPI 3 first")
    version = document.get("openapi")
    if not isinstance(version, str):
        raise DocumentError("it is not an OpenAPI document: it has no field openapi")
    if not version.startswith("3."):
        raise DocumentError(f"it is a document of OpenAPI {version}; versions 3.0 and later 3.x are supported")
    return document
