"""The ``data`` of an inbound event: any JSON object, in which some keys have a meaning (specification, section 6.1)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import Schema, Shape
from followup_mockserver.schema.validation import Validator, dotted

Path = tuple[str | int, ...]


class EventData:
    """The schema of the data of one event type. Keys that the schema does not know are stored and ignored.

    Args:
        shape: the shape of the known part of the data.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._validator = Validator(shape.schema, reject_unknown=False)

    def parse(self, data: Mapping[str, Any], *, reject_misspelled: bool) -> Any:
        """Validate the data, and return it as the arguments of a rule. A key whose value is null counts as omitted.

        Args:
            data: the ``data`` of the event, as the request has it.
            reject_misspelled: whether a key like ``full_name`` is an error where the schema knows ``fullName``.

        Raises:
            ServiceError: the data is invalid; the path of the field begins with ``data``.
        """
        present = without_nulls(data)
        try:
            if reject_misspelled:
                _check_spelling(self._shape.schema, present)
            self._validator.check(present)
        except ServiceError as error:
            raise error.under("data") from None
        return self._shape.convert(present)


def without_nulls(value: Any) -> Any:
    """Return JSON without the keys whose value is null, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _check_spelling(schema: Schema, value: Any) -> None:
    for path, correct in _misspelled(schema, value, ()):
        raise invalid("parameter_unknown", f"There is no such field; did you mean {correct}?", dotted(path))


def _misspelled(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Iterate over the misspelled keys: the path of each, and the correct key."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _misspelled(schema.get("items", {}), item, (*path, position))
    if not isinstance(value, dict):
        return
    properties = _properties(schema)
    for key, item in value.items():
        if key in properties:
            yield from _misspelled(properties[key], item, (*path, key))
        elif (correct := _correct_spelling(key, properties)) is not None:
            yield (*path, key), correct


def _properties(schema: Schema) -> Mapping[str, Schema]:
    """Return the properties of an object schema, or of the object in a union."""
    variants = [schema, *schema.get("anyOf", ())]
    found: Mapping[str, Schema] = next((each["properties"] for each in variants if "properties" in each), {})
    return found


def _correct_spelling(key: str, properties: Iterable[str]) -> str | None:
    return next((name for name in properties if _letters(name) == _letters(key)), None)


def _letters(key: str) -> str:
    return "".join(character for character in key if character.isalnum()).casefold()
