"""A request and its answer, as plain data."""

from collections.abc import Mapping, Sequence

import attrs

from followup_mockserver.contract.operations import Operation


@attrs.define(kw_only=True)
class RawRequest:
    """A request as it arrived. ``repr`` shows nothing of what it says.

    Attributes:
        headers: names in lower case.
        query: pairs of name and value, in their order.
        path_id: the id in the path; None where the path has none.
        body: None where it is larger than the service takes, and was not read.
    """

    operation: Operation
    path: str
    path_id: str | None = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    query: Sequence[tuple[str, str]] = attrs.field(repr=False)
    body: bytes | None = attrs.field(repr=False)


@attrs.define(kw_only=True)
class Answer:
    """What is answered.

    Attributes:
        broken: the connection is dropped: ``disconnect`` without an answer, ``truncate`` in the middle of it.
    """

    status: int
    headers: dict[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(repr=False)
    broken: str | None = None
