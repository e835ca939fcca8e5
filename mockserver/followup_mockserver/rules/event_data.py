"""The ``data`` of an inbound event: free, but for the keys that a rule uses (specification, section 6.1)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import Schema, Shape
from followup_mockserver.schema.validation import Validator, dotted

Path = tuple[str | int, ...]


class EventData:
    """How the data of one event type is checked. Keys that no rule uses are kept, and mean nothing."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._validator = Validator(shape.schema, refuse_unknown=False)

    def checked(self, data: Mapping[str, Any], *, refuse_misspelt: bool) -> Any:
        """Return the values that the rule takes; null is the same as an omitted key.

        Args:
            data: the ``data`` of the event, as it was sent.
            refuse_misspelt: whether a key that is another spelling of one that is used there is an error.

        Raises:
            ServiceError: the data is invalid; the path of the field begins with ``data``.
        """
        given = without_nulls(data)
        try:
            if refuse_misspelt:
                for path, right in _misspelt(self._shape.schema, given, ()):
                    raise invalid(
                        "parameter_unknown", f"This is another spelling of {right}; send {right}.", dotted(path)
                    )
            self._validator.check(given)
        except ServiceError as error:
            raise error.under("data") from None
        return self._shape.convert(given)


def without_nulls(value: Any) -> Any:
    """The same JSON without the keys whose value is null."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _check_spelling(schema: Schema, value: Any) -> None:
    for path, right in _misspelt(schema, value, ()):
        raise invalid("parameter_unknown", f"This is another spelling of {right}; send {right}.", dotted(path))


def _misspelt(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The keys that are other spellings of keys of the schema, each with its path and the right one."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _misspelt(schema.get("items", {}), item, (*path, position))
    if not isinstance(value, dict):
        return
    properties = _properties(schema)
    for key, item in value.items():
        if key in properties:
            yield from _misspelt(properties[key], item, (*path, key))
        elif (right := _spelling_of(key, properties)) is not None:
            yield (*path, key), right


def _properties(schema: Schema) -> Mapping[str, Schema]:
    """The properties of an object, or of the arm of a union that is one."""
    arms = [schema, *schema.get("anyOf", ())]
    found: Mapping[str, Schema] = next((arm["properties"] for arm in arms if "properties" in arm), {})
    return found


def _spelling_of(key: str, properties: Iterable[str]) -> str | None:
    return next((name for name in properties if _letters(name) == _letters(key)), None)


def _letters(key: str) -> str:
    return "".join(character for character in key if character.isalnum()).casefold()
