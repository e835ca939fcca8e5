"""The base class of the objects that the service returns: unknown fields, export, and display."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NoReturn

import attrs

from followup._codec.names import ABSENT_IF_NONE, NOT_IN_JSON
from followup._results.display import html_table, shows_personal_data


class _NoExtra(Mapping[str, Any]):
    """An empty, immutable mapping, which all results without unknown fields share."""

    __slots__ = ()

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"

    def __reduce__(self) -> str:
        return "NO_EXTRA"


NO_EXTRA = _NoExtra()


_NEVER_DISPLAYED = "never_displayed"
"""Key in the metadata of a field that is never displayed."""


@attrs.define(kw_only=True, repr=False)
class Model:
    """Base of the objects that the service returns. ``repr`` shows no personal data and no secrets.

    Attributes:
        extra: fields that this version of the package does not know, by JSON name.
    """

    extra: Mapping[str, Any] = attrs.field(default=NO_EXTRA, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict of their own, with snake_case keys and Python values.

        Objects and lists within are dicts and lists, times are aware ``datetime`` and dates ``date``. Fields that this
        version of the package does not know have their JSON names; the response that the object came from is not
        included.
        """
        fields = {name: _plain(getattr(self, name)) for name in _field_names(type(self))}
        return {**fields, **{name: _plain(value) for name, value in self.extra.items()}}

    def to_json(self) -> str:
        """Return the object as JSON text, as on the wire: camelCase names, times and dates as ISO 8601 strings.

        Fields that this version of the package does not know are included.
        """
        import json  # this and the encoder are not needed to read a webhook

        from followup._codec.encode import encode

        return json.dumps(encode(self), ensure_ascii=False)

    def __repr__(self) -> str:
        # Without the kind of object, which the class name states.
        shown = ", ".join(f"{name}={_short(value)}" for name, value in displayed_fields(self) if name != "object")
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        return html_table(
            type(self).__name__, ["field", "value"], displayed_fields(self), complete=shows_personal_data()
        )


def _short(value: Any) -> str:
    # The repr of a datetime is so long that a few of them hide the rest of an object.
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else repr(value)


def _field_names(cls: type[Any]) -> list[str]:
    return [field.name for field in attrs.fields(cls) if field.name not in NOT_IN_JSON]


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def displayed_fields(model: Model) -> list[tuple[str, Any]]:
    """Return the names and values of the fields that may be displayed now."""
    everything = shows_personal_data()
    shown = [
        (field.name, getattr(model, field.name))
        for field in attrs.fields(type(model))
        if field.repr or (everything and field.name not in NOT_IN_JSON and _NEVER_DISPLAYED not in field.metadata)
    ]
    return [*shown, ("extra", model.extra)] if everything and model.extra else shown


def personal(default: Any = attrs.NOTHING) -> Any:
    """Declare a field that ``repr`` shows only where ``show_personal_data`` permits it.

    Args:
        default: value of the field when the response lacks it.

    Returns:
        The field, for use in the body of a result class.
    """
    return attrs.field(default=default, repr=False)


def secret() -> Any:
    """Declare an optional field that ``repr`` never shows, and that is omitted from JSON when it is None."""
    return attrs.field(default=None, repr=False, metadata={ABSENT_IF_NONE: True, _NEVER_DISPLAYED: True})
