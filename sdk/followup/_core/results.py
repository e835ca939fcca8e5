"""The base classes of the objects that the service returns: unknown fields, export, and their response."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from followup._core.codec.kinds import ABSENT_IF_NONE, NOT_IN_JSON
from followup._core.codec.wire import short
from followup._core.errors import headers_from
from followup._core.plain import Late
from followup._core.tracebacks import clears_frames

if TYPE_CHECKING:
    import httpx
else:
    httpx = Late("httpx")  # the mock and the commands read the declarations, and need no HTTP client


class Value:
    """Base of attrs classes whose objects are equal if their fields are, and are shown with their fields.

    attrs would generate these methods for each class, which slows every start.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        # Not isinstance: a result of a subclass has fields that this comparison would ignore.
        return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        # Without the kind of object, which the class name states.
        shown = {each.name: short if each.repr is True else each.repr for each in _fields(self) if each.repr}
        texts = [f"{name}={text_of(getattr(self, name))}" for name, text_of in shown.items() if name != "object"]
        return f"{type(self).__name__}({', '.join(texts)})"


class FrozenValue(Value):
    """Base of frozen attrs classes, whose objects are hashed by their fields too."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((type(self), *_compared(self)))


def _fields(value: Any) -> Any:
    return attrs.fields(type(value))


def _compared(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in _fields(value) if field.eq]


@attrs.define(kw_only=True, eq=False, repr=False)
class Model(Value):
    """Base of the objects that the service returns. ``repr`` shows no personal data and no secrets.

    Attributes:
        extra: fields that this version of the package does not know, by JSON name.
    """

    extra: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @clears_frames
    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict of their own, with snake_case keys and Python values.

        Objects and lists within are dicts and lists, times are aware ``datetime`` and dates ``date``. Fields that this
        version of the package does not know have their JSON names, unless a known field has the name; the response that
        the object came from is not included.
        """
        names = [field.name for field in _fields(self) if field.name not in NOT_IN_JSON]
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields |= {name: value for name, value in self.extra.items() if name not in fields}
        return {name: _plain(value) for name, value in fields.items()}

    @clears_frames
    def to_json(self) -> str:
        """Return the object as JSON text, as on the wire: camelCase names, times and dates as ISO 8601 strings.

        Fields that this version of the package does not know are included.
        """
        import json  # this and the encoder are not needed to read a webhook

        from followup._core.codec.encode import encode

        text = json.dumps(encode(self), ensure_ascii=False)
        # Half a character, which JSON permits and UTF-8 cannot express.
        return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def personal(default: Any = attrs.NOTHING) -> Any:
    """Declare a field that ``repr`` does not show.

    Args:
        default: value of the field when the response lacks it.

    Returns:
        The field, for use in the body of a result class.
    """
    return attrs.field(default=default, repr=False)


def secret() -> Any:
    """Declare an optional field that ``repr`` never shows, and that is omitted from JSON when it is None."""
    return attrs.field(default=None, repr=False, metadata={ABSENT_IF_NONE: True})


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ResponseInfo(FrozenValue):
    """The HTTP response that a result came from.

    Attributes:
        status_code: HTTP status.
        headers: headers of the response; their case does not matter.
        request_id: id of the request, which the service's support asks for; None if the response has none.
    """

    status_code: int
    _headers: Mapping[str, str] = attrs.field(alias="headers", repr=False)
    request_id: str | None

    @property
    def headers(self) -> "httpx.Headers":
        """The headers of the response; their case does not matter."""
        return headers_from(self._headers)


NO_RESPONSE = ResponseInfo(status_code=0, headers={}, request_id=None)
"""Placeholder for results that did not come from a request."""


@attrs.define(kw_only=True, eq=False, repr=False)
class Result(Model):
    """Base of the objects that an operation returns.

    Attributes:
        last_response: the HTTP response that this object came from: its status, headers and request id.
    """

    last_response: ResponseInfo = attrs.field(default=NO_RESPONSE, repr=False, eq=False)
