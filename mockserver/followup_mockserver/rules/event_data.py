"""The ``data`` of an inbound event: any JSON object, in which some keys have a meaning (specification, section 6.1)."""

from collections.abc import Iterator, Mapping
from typing import Any

from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import Schema, Shape
from followup_mockserver.schema.validation import Validator, dotted

Path = tuple[str | int, ...]


class EventData:
    """The schema of the data of one event type. Keys that the schema does not know are stored, and not read.

    Args:
        shape: the shape of the known part of the data.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._validator = Validator(shape.schema, reject_unknown=False)

    def parse(self, data: Mapping[str, Any], *, reject_mistaken: bool) -> Any:
        """Validate the data, and return it as the arguments of a rule. A key whose value is null counts as omitted.

        Args:
            data: the ``data`` of the event, as the request has it.
            reject_mistaken: whether a key like ``full_name`` is an error where the schema knows ``fullName``, and a key
                in another place than the schema has it, unless it is in its own place as well.

        Raises:
            ServiceError: the data is invalid; the path of the field begins with ``data``.
        """
        present = without_nulls(data)
        try:
            if reject_mistaken:
                _check_keys(self._shape.schema, present)
            self._validator.check(present)
        except ServiceError as error:
            raise error.under("data") from None
        return self._shape.convert(present)

    def ignored_keys(self, data: Mapping[str, Any]) -> Iterator[str]:
        """Iterate over the paths of the keys that the schema does not know, such as ``data.doctor``."""
        return (dotted(("data", *path)) for path, _ in _unknown(self._shape.schema, without_nulls(data), ()))


def without_nulls(value: Any) -> Any:
    """Return JSON without the keys whose value is null, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _check_keys(schema: Schema, value: Any) -> None:
    for path, properties in _unknown(schema, value, ()):
        key = str(path[-1])
        correct = next((name for name in properties if _letters(name) == _letters(key)), None)
        if correct is None:
            correct = _own_place(schema, value, key)
        if correct is not None:
            raise invalid("parameter_unknown", f"There is no such field; did you mean {correct}?", dotted(path))


def _own_place(schema: Schema, value: Any, key: str) -> str | None:
    """Return the place that a schema has a key in; None if it has none, or the value has the key there as well."""
    places = [place for place in _known(schema, ()) if place[-1] == key]
    present = {tuple(step for step in path if isinstance(step, str)) for path in _paths(value, ())} if places else set()
    return dotted(places[0]) if places and not present.intersection(places) else None


def _unknown(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Schema]]]:
    """Iterate over the unknown keys: the path of each, and the properties beside it. A free object has none."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _unknown(schema.get("items", {}), item, (*path, position))
    properties = _properties(schema)
    if not isinstance(value, dict) or not properties:
        return
    for key, item in value.items():
        if key in properties:
            yield from _unknown(properties[key], item, (*path, key))
        else:
            yield (*path, key), properties


def _known(schema: Schema, path: Path) -> Iterator[Path]:
    """Iterate over the paths that a schema knows, without positions in arrays."""
    for name, each in {**_properties(schema), **_properties(schema.get("items", {}))}.items():
        yield (*path, name)
        yield from _known(each, (*path, name))


def _paths(value: Any, path: Path) -> Iterator[Path]:
    """Iterate over the paths of all keys in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _properties(schema: Schema) -> Mapping[str, Schema]:
    """Return the properties of an object schema, or of the object in a union."""
    variants = [schema, *schema.get("anyOf", ())]
    found: Mapping[str, Schema] = next((each["properties"] for each in variants if "properties" in each), {})
    return found


def _letters(key: str) -> str:
    return "".join(character for character in key if character.isalnum()).casefold()
