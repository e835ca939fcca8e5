"""The schemas of a body, by media type."""

from collections.abc import Mapping

import attrs

from followup_mockserver.judge.drift.schemas import Schema

JSON = "application/json"


@attrs.frozen(eq=False)
class ByMediaType:
    """The schemas of a body.

    Attributes:
        schemas: the schemas by media type, in lower case and without parameters.
    """

    schemas: Mapping[str, Schema]

    @property
    def json(self) -> Schema | None:
        """The schema of a body with the media type ``application/json``; None: the body cannot have it."""
        return next((self.schemas[name] for name in (JSON, "application/*", "*/*") if name in self.schemas), None)

    @property
    def other_json(self) -> tuple[str, Schema] | None:
        """A media type such as ``application/problem+json`` with its schema, if there is one."""
        return next(((name, schema) for name, schema in self.schemas.items() if name.endswith("+json")), None)

    @property
    def others(self) -> list[str]:
        """The media types other than JSON."""
        return [name for name in self.schemas if name not in (JSON, "application/*", "*/*")]
