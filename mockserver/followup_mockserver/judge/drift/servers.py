"""Separates the base URL of the service from its paths, which documents divide in different places."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from followup_mockserver.judge.drift.errors import DocumentError
from followup_mockserver.judge.drift.raw import Raw


class Routes:
    """The path items of a document, with their paths below the base URL.

    One document has the paths ``/v1/patients`` below the server ``https://clinic.example/api``, another one the paths
    ``/patients`` below ``https://clinic.example/api/v1``. Clients are configured with the base URL, so both are the
    same.

    Args:
        raw: the document.
        known_paths: the paths of the service, with ``{}`` for each parameter.

    Raises:
        DocumentError: the document has no paths.
    """

    def __init__(self, raw: Raw, known_paths: set[str]) -> None:
        self._raw = raw
        self._known = known_paths
        self._items = raw.object(raw.document.get("paths"), "paths")
        if not self._items:
            raise DocumentError("it has no paths")
        self._base = self._common_base()

    def items(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Iterate over path, path item and place in the document."""
        for path, value in self._items.items():
            if path.startswith("/"):
                item = self._raw.object(value, f"paths.{path}")
                yield self._below_base(path, item), item, f"paths.{path}"

    def _below_base(self, path: str, item: dict[str, Any]) -> str:
        below = [each.removeprefix(self._base) for each in self._complete(path, item) if each.startswith(self._base)]
        known = [each for each in below if _blank(each) in self._known]
        return next(iter([*known, *below, path]))

    def _common_base(self) -> str:
        """Return the path of the base URL below which most of the known paths are."""
        counted: Counter[str] = Counter()
        for path, value in self._items.items():
            for complete in self._complete(path, self._raw.object(value, f"paths.{path}")):
                bases = {
                    _blank(complete).removesuffix(known) for known in self._known if _blank(complete).endswith(known)
                }
                counted.update(base for base in bases if "{}" not in base)
        return min(counted, key=lambda base: (-counted[base], len(base)), default="")

    def _complete(self, path: str, item: dict[str, Any]) -> list[str]:
        """Return a path below each of the servers."""
        operations = [value for value in item.values() if isinstance(value, dict)]
        servers = next((each["servers"] for each in (*operations, item) if "servers" in each), None)
        servers = servers or self._raw.document.get("servers") or [{}]
        found = [_path_of(self._raw.object(each, "servers")) for each in self._raw.list(servers, "servers")]
        return [*dict.fromkeys(base + path for base in found)]


def _path_of(server: dict[str, Any]) -> str:
    """Return the path of a server's URL, with the default values of its variables."""
    variables = server.get("variables")

    def default(found: re.Match[str]) -> str:
        variable = variables.get(found[1]) if isinstance(variables, dict) else None
        return str(variable.get("default", "")) if isinstance(variable, dict) else ""

    try:
        return urlsplit(re.sub(r"\{([^}]*)\}", default, str(server.get("url", "/")))).path.rstrip("/")
    except ValueError as error:
        raise DocumentError(f"servers: {error}") from None


def _blank(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)
